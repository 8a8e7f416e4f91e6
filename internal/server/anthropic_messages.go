package server

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// anthropicMessages is POST /v1/messages.
func (s *Server) anthropicMessages(w http.ResponseWriter, r *http.Request) error {
	var req anthropicRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	t, err := req.turn()
	if err != nil {
		return err
	}
	m, err := s.catalog.resolve(t.Model)
	if err != nil {
		return err
	}
	w.Header().Set("Request-Id", w.Header().Get("X-Request-Id")) // where Anthropic's clients look
	out := newAnthropicWriter(cmp.Or(t.Model, m.Name))
	if req.Stream {
		out.stream = newStream(w, typeSSE)
	}
	if _, err := s.generate(r.Context(), t, out.event); err != nil {
		if out.stream != nil {
			return out.stream.fail(anthropic, err)
		}
		return err
	}
	if out.stream == nil {
		writeJSON(w, http.StatusOK, out.message)
	}
	return nil
}

// anthropicCount is POST /v1/messages/count_tokens.
func (s *Server) anthropicCount(w http.ResponseWriter, r *http.Request) error {
	var req anthropicRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	t, err := req.turn()
	if err != nil {
		return err
	}
	l, err := s.acquire(r.Context(), t.Model)
	if err != nil {
		return err
	}
	defer s.pool.release(l, nil)
	er, err := s.engineRequest(l, t)
	if err != nil {
		return err
	}
	n, err := l.eng.CountTokens(r.Context(), er)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]int{"input_tokens": n})
	return nil
}

// turn checks the request and puts it into no protocol's words.
func (r *anthropicRequest) turn() (*turn, error) {
	switch {
	case len(r.Container) > 0:
		return nil, unsupported("container", "there are no containers here")
	case len(r.MCPServers) > 0:
		return nil, unsupported("mcp_servers", "the server calls no tools itself")
	}
	t := &turn{Words: anthropicWords}
	if err := (&samplingFields{Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK}).set(t); err != nil {
		return nil, err
	}
	if err := (&outputFields{Model: r.Model, MaxTokens: r.MaxTokens, Stop: r.StopSequences}).set(t); err != nil {
		if bad := asError(err); bad.Param == "stop" {
			bad.Param = "stop_sequences"
		}
		return nil, err
	}
	if err := r.setThinking(t); err != nil {
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

var anthropicWords = strings.NewReplacer(".function.parameters", ".input_schema")

// Budgets of thinking up to which an effort is meant. The models know efforts and
// no budgets.
const (
	lowBudget    = 2 << 10
	mediumBudget = 8 << 10
	highBudget   = 32 << 10
)

func (r *anthropicRequest) setThinking(t *turn) error {
	switch r.Thinking.Type {
	case "", "disabled":
		t.Effort = "none"
		return nil
	case "adaptive":
		t.Effort = string(r.OutputConfig.Effort)
		return nil
	case "enabled":
	default:
		return invalid("thinking.type", "%q is not known, want enabled, adaptive or disabled", r.Thinking.Type)
	}
	if r.Thinking.BudgetTokens == nil {
		return invalid("thinking.budget_tokens", "is missing")
	}
	switch n := *r.Thinking.BudgetTokens; {
	case n < 1:
		return invalid("thinking.budget_tokens", "is %d, want at least 1", n)
	case r.OutputConfig.Effort != "":
		t.Effort = string(r.OutputConfig.Effort)
	case n <= lowBudget:
		t.Effort = "low"
	case n <= mediumBudget:
		t.Effort = "medium"
	case n <= highBudget:
		t.Effort = "high"
	default:
		t.Effort = "max"
	}
	return nil
}

func (r *anthropicRequest) setFormat(t *turn) error {
	f, param := r.OutputConfig.Format, "output_config.format"
	if f == nil {
		f, param = r.OutputFormat, "output_format"
	}
	switch {
	case f == nil:
		return nil
	case f.Type != "json_schema":
		return invalid(param+".type", "%q is not known, want json_schema", f.Type)
	case len(f.Schema) == 0:
		return invalid(param+".schema", "is missing")
	}
	t.Format = format{Kind: formatSchema, Schema: f.Schema, Param: param + ".schema"}
	return nil
}

func (r *anthropicRequest) setTools(t *turn) error {
	tools := chatRequest{}
	for _, tool := range r.Tools {
		tools.Tools = append(tools.Tools, tool.toolField)
	}
	choice := engine.ToolChoice{Name: r.ToolChoice.Name}
	switch r.ToolChoice.Type {
	case "", "auto":
	case "any":
		choice.Mode = engine.ToolsRequired
	case "tool":
		choice.Mode = engine.ToolsFunction
	case "none":
		choice.Mode = engine.ToolsNone
	default:
		return invalid("tool_choice.type", "%q is not known, want auto, any, tool or none", r.ToolChoice.Type)
	}
	tools.ToolChoice.ToolChoice = choice
	t.ParallelCalls = !r.ToolChoice.DisableParallel
	err := tools.setTools(t)
	if err != nil {
		bad := asError(err)
		bad.Param = strings.ReplaceAll(bad.Param, ".function", "")
	}
	return err
}

func (r *anthropicRequest) setMessages(t *turn) error {
	system, err := r.System.parts()
	if err != nil {
		return err
	}
	if len(system) > 0 {
		t.Conversation.Messages = append(t.Conversation.Messages, chat.Message{Role: chat.System, Content: system, List: r.System.list})
	}
	if len(r.Messages) == 0 {
		return invalid("messages", "is empty")
	}
	for i := range r.Messages {
		m, path := &r.Messages[i], fmt.Sprintf("messages[%d]", i)
		switch m.Role {
		case chat.User:
			err = m.user(&t.Conversation)
		case chat.Assistant:
			err = m.assistant(&t.Conversation)
		case "":
			err = invalid(path+".role", "is missing")
		default:
			err = invalid(path+".role", "%q is not known, want user or assistant; system is a field of its own", m.Role)
		}
		if err != nil {
			return err
		}
	}
	if last := len(r.Messages) - 1; r.Messages[last].Role == chat.Assistant {
		return unsupported(fmt.Sprintf("messages[%d]", last), "is the assistant's: the models do not go on with an answer that has begun")
	}
	return nil
}

// user adds the messages that a user's blocks are: results of tools are messages of
// their own in the order of the blocks.
func (m *anthropicMessage) user(c *chat.Conversation) error {
	var said *chat.Message
	for i := range m.Content.blocks {
		b, path := &m.Content.blocks[i], m.Content.paths[i]
		if b.Type == "tool_result" {
			if b.ToolUseID == "" {
				return invalid(path+".tool_use_id", "is missing")
			}
			parts, err := b.Content.parts()
			if err != nil {
				return err
			}
			c.Messages = append(c.Messages, chat.Message{Role: chat.ToolRole, Content: parts, ToolCallID: b.ToolUseID, List: b.Content.list})
			said = nil
			continue
		}
		part, err := b.part(path)
		if err != nil {
			return err
		}
		if said == nil {
			c.Messages = append(c.Messages, chat.Message{Role: chat.User, List: m.Content.list})
			said = &c.Messages[len(c.Messages)-1]
		}
		said.Content = append(said.Content, part)
	}
	return nil
}

// assistant adds an answer.
func (m *anthropicMessage) assistant(c *chat.Conversation) error {
	said := chat.Message{Role: chat.Assistant, List: m.Content.list}
	for i := range m.Content.blocks {
		b, path := &m.Content.blocks[i], m.Content.paths[i]
		switch b.Type {
		case "thinking":
			said.Reasoning += b.Thinking
		case "redacted_thinking": // nobody but who wrote it can read it
		case "tool_use":
			if b.Name == "" {
				return invalid(path+".name", "is missing")
			}
			args, err := argumentsObject(b.Input, path+".input")
			if err != nil {
				return err
			}
			said.ToolCalls = append(said.ToolCalls, chat.ToolCall{ID: b.ID, Name: b.Name, Arguments: args})
		default:
			part, err := b.part(path)
			if err != nil {
				return err
			}
			said.Content = append(said.Content, part)
		}
	}
	c.Messages = append(c.Messages, said)
	return nil
}

// anthropicID makes the id of an answer.
func anthropicID() string { return "msg_" + rand.Text() }
