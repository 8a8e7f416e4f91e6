package server

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// openAIRoutes are those of OpenAI's API.
func (s *Server) openAIRoutes() []route {
	return []route{
		{method: http.MethodPost, path: "/v1/chat/completions", handle: s.chatCompletions},
		{method: http.MethodPost, path: "/v1/completions", handle: s.completions},
		{method: http.MethodPost, path: "/v1/embeddings", handle: s.embeddings},
		{method: http.MethodGet, path: "/v1/models", handle: s.models},
		{method: http.MethodGet, path: "/v1/models/{id...}", handle: s.model},
	}
}

// chatCompletions is POST /v1/chat/completions.
func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) error {
	var req chatRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	t, err := req.turn()
	if err != nil {
		return err
	}
	id, err := s.openAIIdentity("chatcmpl-", t.Model)
	if err != nil {
		return err
	}
	if req.Stream {
		return s.streamChat(w, r, t, id, req.StreamOptions.IncludeUsage)
	}
	answers, err := s.generate(r.Context(), t, nil)
	if err != nil {
		return err
	}
	resp := id.chat("chat.completion")
	for i, a := range answers {
		c := chatChoice{Index: i, Message: messageOf(a), FinishReason: &a.FinishReason}
		if t.Logprobs {
			c.Logprobs = logprobsOf(a.Tokens)
		}
		resp.Choices = append(resp.Choices, c)
	}
	resp.Usage = usageOf(answers).openAI()
	writeJSON(w, http.StatusOK, resp)
	return nil
}

// messageOf is a whole answer.
func messageOf(a *answer) *chatAnswer {
	m := &chatAnswer{Role: chat.Assistant, Content: text(a.Text), ReasoningContent: a.Reasoning}
	for _, call := range a.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, toolCallJSON{
			ID: call.ID, Type: "function", Function: toolFunctionJSON{call.Name, string(call.Arguments)},
		})
	}
	if a.Text == "" && len(a.ToolCalls) > 0 {
		m.Content = nullText
	}
	return m
}

// turn checks the request and puts it into no protocol's words.
func (r *chatRequest) turn() (*turn, error) {
	if err := r.refuse(); err != nil {
		return nil, err
	}
	t := &turn{Effort: string(r.ReasoningEffort), ParallelCalls: r.ParallelToolCalls == nil || *r.ParallelToolCalls}
	if err := r.outputFields.set(t); err != nil {
		return nil, err
	}
	if err := r.samplingFields.set(t); err != nil {
		return nil, err
	}
	if r.MaxCompletionTokens != nil {
		if err := setMaxTokens(t, "max_completion_tokens", *r.MaxCompletionTokens); err != nil {
			return nil, err
		}
	}
	if err := r.setLogprobs(t); err != nil {
		return nil, err
	}
	if err := r.setFormat(t); err != nil {
		return nil, err
	}
	if err := r.setTools(t); err != nil {
		return nil, err
	}
	return t, r.setMessages(t)
}

// refuse names what this server does not have and that would change the answer.
func (r *chatRequest) refuse() error {
	switch {
	case len(r.Functions) > 0:
		return unsupported("functions", "is the old form of tools, which are supported")
	case len(r.FunctionCall) > 0:
		return unsupported("function_call", "is the old form of tool_choice, which is supported")
	case len(r.Audio) > 0:
		return unsupported("audio", "the models do not speak")
	case len(r.WebSearch) > 0:
		return unsupported("web_search_options", "there is no web search here")
	case slices.ContainsFunc(r.Modalities, func(m string) bool { return m != "text" }):
		return unsupported("modalities", "the models answer in text")
	}
	return nil
}

func (r *chatRequest) setMessages(t *turn) error {
	if len(r.Messages) == 0 {
		return invalid("messages", "is empty")
	}
	for i := range r.Messages {
		m, err := r.Messages[i].message(fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return err
		}
		t.Conversation.Messages = append(t.Conversation.Messages, m)
	}
	return nil
}

// message is the message in the conversation's words.
func (m *chatMessage) message(path string) (chat.Message, error) {
	out := chat.Message{
		Role: m.Role, Content: m.Content.parts, List: m.Content.list, Name: m.Name, ToolCallID: m.ToolCallID,
		Reasoning: cmp.Or(m.ReasoningContent, m.Reasoning),
	}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, c.call)
	}
	switch m.Role {
	case chat.System, chat.Developer, chat.User, chat.Assistant, chat.ToolRole:
	case "":
		return out, invalid(path+".role", "is missing")
	default:
		return out, invalid(path+".role", "%q is not known, want system, developer, user, assistant or tool", m.Role)
	}
	switch {
	case len(m.FunctionCall) > 0:
		return out, unsupported(path+".function_call", "is the old form of tool_calls, which are supported")
	case len(m.ToolCalls) > 0 && m.Role != chat.Assistant:
		return out, invalid(path+".tool_calls", "only an assistant calls tools")
	case !m.Content.given && m.Role != chat.Assistant:
		return out, invalid(path+".content", "is missing")
	case m.Role == chat.ToolRole && m.ToolCallID == "":
		return out, invalid(path+".tool_call_id", "is missing")
	}
	return out, nil
}

func (r *chatRequest) setTools(t *turn) error {
	names := map[string]bool{}
	for i, tool := range r.Tools {
		if names[tool.name] {
			return invalid(fmt.Sprintf("tools[%d].function.name", i), "%q is the name of two tools", tool.name)
		}
		names[tool.name] = true
		t.Conversation.Tools = append(t.Conversation.Tools, tool.raw)
	}
	t.ToolChoice = r.ToolChoice.ToolChoice
	switch {
	case t.ToolChoice.Mode == engine.ToolsRequired && len(names) == 0:
		return invalid("tool_choice", "a call is required, but there are no tools")
	case t.ToolChoice.Mode == engine.ToolsFunction && !names[t.ToolChoice.Name]:
		return invalid("tool_choice.function.name", "%q is none of the tools", t.ToolChoice.Name)
	}
	return nil
}

// maxTopLogprobs is OpenAI's limit.
const maxTopLogprobs = 20

func (r *chatRequest) setLogprobs(t *turn) error {
	t.Logprobs = r.Logprobs != nil && *r.Logprobs
	if r.TopLogprobs == nil {
		return nil
	}
	t.TopLogprobs = *r.TopLogprobs
	switch {
	case t.TopLogprobs < 0 || t.TopLogprobs > maxTopLogprobs:
		return invalid("top_logprobs", "is %d, want 0 to %d", t.TopLogprobs, maxTopLogprobs)
	case !t.Logprobs && t.TopLogprobs > 0:
		return invalid("top_logprobs", "needs logprobs to be true")
	}
	return nil
}

func (r *chatRequest) setFormat(t *turn) error {
	switch {
	case r.Grammar != nil && r.Regex != nil:
		return invalid("regex", "does not go together with grammar")
	case r.Grammar != nil:
		t.Format = format{Kind: formatGBNF, Text: *r.Grammar, Param: "grammar"}
	case r.Regex != nil:
		t.Format = format{Kind: formatRegex, Text: *r.Regex, Param: "regex"}
	}
	f := r.ResponseFormat
	if f == nil {
		return nil
	}
	if t.Format.Kind != formatFree && f.Type != "text" {
		return invalid(t.Format.Param, "does not go together with response_format")
	}
	switch f.Type {
	case "text":
	case "json_object":
		t.Format = format{Kind: formatJSON, Param: "response_format"}
		if len(f.Schema) > 0 {
			t.Format = format{Kind: formatSchema, Schema: f.Schema, Param: "response_format.schema"}
		}
	case "json_schema":
		if len(f.JSONSchema.Schema) == 0 {
			return invalid("response_format.json_schema.schema", "is missing")
		}
		t.Format = format{Kind: formatSchema, Schema: f.JSONSchema.Schema, Param: "response_format.json_schema.schema"}
	default:
		return invalid("response_format.type", "%q is not known, want text, json_object or json_schema", f.Type)
	}
	return nil
}

// Limits of what a request may ask for.
const (
	maxAnswers = 8
	maxStops   = 16
	maxStop    = 1024 // bytes
)

func (f *outputFields) set(t *turn) error {
	t.Model, t.Stop = f.Model, f.Stop
	if f.N != nil {
		if *f.N < 1 || *f.N > maxAnswers {
			return invalid("n", "is %d, want 1 to %d", *f.N, maxAnswers)
		}
		t.N = *f.N
	}
	if len(f.Stop) > maxStops {
		return invalid("stop", "has %d sequences, at most %d are allowed", len(f.Stop), maxStops)
	}
	for _, s := range f.Stop {
		if s == "" || len(s) > maxStop {
			return invalid("stop", "a sequence of %d bytes, want 1 to %d", len(s), maxStop)
		}
	}
	if f.MaxTokens != nil {
		return setMaxTokens(t, "max_tokens", *f.MaxTokens)
	}
	return nil
}

// setMaxTokens takes -1 for no limit, as llama.cpp's server does.
func setMaxTokens(t *turn, param string, n int) error {
	if n < 1 && n != -1 {
		return invalid(param, "is %d, want at least 1, or -1 for no limit", n)
	}
	t.MaxTokens = max(n, 0)
	return nil
}

func (f *samplingFields) set(t *turn) error {
	t.Sampling = sampling{
		Temperature: f.Temperature, TopP: f.TopP, MinP: f.MinP, TopK: f.TopK, Seed: f.Seed, RepeatPenalty: cmp.Or(f.RepeatPenalty, f.Repetition),
		PresencePenalty: f.PresencePenalty, FrequencyPenalty: f.FrequencyPenalty,
	}
	for _, b := range []struct {
		param     string
		v         *float64
		low, high float64
	}{
		{"temperature", f.Temperature, 0, math.MaxFloat32},
		{"top_p", f.TopP, 0, 1},
		{"min_p", f.MinP, 0, 1},
		{"presence_penalty", f.PresencePenalty, -2, 2},
		{"frequency_penalty", f.FrequencyPenalty, -2, 2},
	} {
		if b.v != nil && !(*b.v >= b.low && *b.v <= b.high) {
			if b.high == math.MaxFloat32 && !(*b.v > b.high) {
				return invalid(b.param, "is %g, want at least %g", *b.v, b.low)
			}
			return invalid(b.param, "is %g, want %g to %g", *b.v, b.low, b.high)
		}
	}
	if f.TopP != nil && *f.TopP == 0 { // the likeliest token is what is left of everything
		one, greedy := 1, 1.0
		t.Sampling.TopK, t.Sampling.TopP = &one, &greedy
	}
	if v := t.Sampling.RepeatPenalty; v != nil && !(*v > 0 && *v <= math.MaxFloat32) {
		return invalid("repeat_penalty", "is %g, want more than 0, at most %g", *v, math.MaxFloat32)
	}
	if v := f.TopK; v != nil && (*v < -1 || *v > math.MaxInt32) {
		return invalid("top_k", "is %d, want 0 (all) to %d", *v, math.MaxInt32)
	} else if v != nil && *v == -1 { // vLLM's word for all
		all := 0
		t.Sampling.TopK = &all
	}
	return f.setBias(t)
}

// setBias reads {"ID": bias}.
func (f *samplingFields) setBias(t *turn) error {
	for key, bias := range f.LogitBias {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 {
			return invalid("logit_bias", "%.40q is not the id of a token", key)
		}
		if !(bias >= -100 && bias <= 100) {
			return invalid("logit_bias."+key, "is %g, want -100 to 100", bias)
		}
		if t.LogitBias == nil {
			t.LogitBias = map[int32]float32{}
		}
		t.LogitBias[int32(id)] = float32(bias)
	}
	return nil
}
