package clients

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func openAI() openai.Client {
	return openai.NewClient(option.WithBaseURL(serverURL+"/v1/"), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

const (
	question = "What is the capital of France?"
	wanted   = "The capital of France is Paris."
)

// chat is a request with greedy sampling and without thinking.
func chat(messages ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: model, Messages: messages, Temperature: openai.Float(0), MaxCompletionTokens: openai.Int(200), ReasoningEffort: shared.ReasoningEffortNone,
	}
}

func TestOpenAIChat(t *testing.T) {
	c := openAI()
	got, err := c.Chat.Completions.New(t.Context(), chat(openai.UserMessage(question)))
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Choices[0]; m.Message.Content != wanted || m.FinishReason != "stop" || got.Usage.CompletionTokens != 13 {
		t.Errorf("answered %s", got.RawJSON())
	}
}

func TestOpenAIStream(t *testing.T) {
	c := openAI()
	p := chat(openai.UserMessage(question))
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			t.Fatalf("a chunk that does not fit: %s", s.Current().RawJSON())
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if acc.Choices[0].Message.Content != wanted || acc.Usage.TotalTokens != 36 {
		t.Errorf("answered %+v", acc.ChatCompletion)
	}
}

func TestOpenAITools(t *testing.T) {
	c, it := openAI(), task(t, "tool_call")
	p := chat(openai.UserMessage(it.text()))
	p.ReasoningEffort = shared.ReasoningEffortHigh
	for _, tool := range it.Tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: tool.Function.Name, Description: openai.String(tool.Function.Description), Parameters: tool.Function.Parameters,
		}))
	}
	s := c.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	finished := 0
	for s.Next() {
		acc.AddChunk(s.Current())
		if call, ok := acc.JustFinishedToolCall(); ok {
			finished++
			checkCall(t, it, call.Name, call.Arguments)
		}
	}
	if s.Err() != nil || finished != 1 || acc.Choices[0].FinishReason != "tool_calls" || acc.Choices[0].Message.Content != "" {
		t.Fatalf("error %v, answered %+v", s.Err(), acc.Choices)
	}
	p.Messages = append(p.Messages, acc.Choices[0].Message.ToParam(), openai.ToolMessage(`{"time":"12:30"}`, acc.Choices[0].Message.ToolCalls[0].ID))
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil || got.Choices[0].FinishReason != "stop" || got.Choices[0].Message.Content == "" {
		t.Errorf("after the tool's result: error %v, answered %s", err, got.RawJSON())
	}
}

// checkCall compares a call with the reference's.
func checkCall(t *testing.T, it *item, name, arguments string) {
	t.Helper()
	var args any
	if err := json.Unmarshal([]byte(arguments), &args); err != nil {
		t.Errorf("%v in %s", err, arguments)
	}
	a, _ := json.Marshal(args)
	b, _ := json.Marshal(it.Reference.ToolCall.Args)
	if name != it.Reference.ToolCall.Name || string(a) != string(b) {
		t.Errorf("call %s(%s), want %s(%s)", name, a, it.Reference.ToolCall.Name, b)
	}
}

func TestOpenAIMedia(t *testing.T) {
	c := openAI()
	picture, sound := task(t, "position"), task(t, "speech")
	for it, p := range map[*item]openai.ChatCompletionContentPartUnionParam{
		picture: openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + picture.mediumBase64(t)}),
		sound:   openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: sound.mediumBase64(t), Format: "wav"}),
	} {
		req := chat(openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{p, openai.TextContentPart(it.text())}))
		if it == sound {
			req.ReasoningEffort = shared.ReasoningEffortHigh
		} else {
			req.ReasoningEffort = shared.ReasoningEffortLow
		}
		got, err := c.Chat.Completions.New(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if text := got.Choices[0].Message.Content; text != it.Reference.Content {
			t.Errorf("answered %q, want %q", text, it.Reference.Content)
		}
	}
}

func TestOpenAIStructured(t *testing.T) {
	c := openAI()
	p := chat(openai.UserMessage(question))
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "city", Strict: openai.Bool(true), Schema: map[string]any{
			"type": "object", "properties": map[string]any{"city": map[string]any{"enum": []string{"Paris", "Rome"}}}, "required": []string{"city"}, "additionalProperties": false,
		}},
	}}
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var v struct{ City string }
	if err := json.Unmarshal([]byte(got.Choices[0].Message.Content), &v); err != nil || v.City != "Paris" && v.City != "Rome" {
		t.Errorf("answered %q", got.Choices[0].Message.Content)
	}
}

func TestOpenAIModelsAndEmbeddings(t *testing.T) {
	c := openAI()
	models, err := c.Models.List(t.Context())
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != model {
		t.Errorf("error %v, models %+v", err, models)
	}
	got, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"red", "blue"}}})
	if err != nil || len(got.Data) != 2 || len(got.Data[0].Embedding) == 0 {
		t.Errorf("error %v, vectors %+v", err, got)
	}
}

func TestOpenAIErrors(t *testing.T) {
	c := openAI()
	p := chat(openai.UserMessage(question))
	p.Model = "none"
	_, err := c.Chat.Completions.New(t.Context(), p)
	var bad *openai.Error
	if !errors.As(err, &bad) || bad.StatusCode != 404 || bad.Code != "model_not_found" || bad.Message == "" {
		t.Errorf("error %v", err)
	}
}

// respond is a request with greedy sampling and without thinking.
func respond(input string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: model, Temperature: openai.Float(0), MaxOutputTokens: openai.Int(200), Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffortNone},
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(input)},
	}
}

func TestOpenAIResponses(t *testing.T) {
	c := openAI()
	first, err := c.Responses.New(t.Context(), respond("My favourite food is cake."))
	if err != nil {
		t.Fatal(err)
	}
	p := respond("What is my favourite food?")
	p.PreviousResponseID = openai.String(first.ID)
	second, err := c.Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if second.OutputText() != "Your favourite food is cake." || second.Status != "completed" {
		t.Errorf("answered %s", second.RawJSON())
	}
	if got, err := c.Responses.Get(t.Context(), second.ID, responses.ResponseGetParams{}); err != nil || got.OutputText() != second.OutputText() {
		t.Errorf("error %v, kept %s", err, got.RawJSON())
	}
}

func TestOpenAIResponsesStream(t *testing.T) {
	c, it := openAI(), task(t, "tool_call")
	p := respond(it.text())
	p.Reasoning.Effort = shared.ReasoningEffortHigh
	for _, tool := range it.Tools {
		p.Tools = append(p.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: tool.Function.Name, Description: openai.String(tool.Function.Description), Parameters: tool.Function.Parameters, Strict: openai.Bool(false),
		}})
	}
	s := c.Responses.NewStreaming(t.Context(), p)
	var reasoning, args string
	var last responses.Response
	for s.Next() {
		switch e := s.Current().AsAny().(type) {
		case responses.ResponseReasoningTextDeltaEvent:
			reasoning += e.Delta
		case responses.ResponseFunctionCallArgumentsDeltaEvent:
			args += e.Delta
		case responses.ResponseCompletedEvent:
			last = e.Response
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if reasoning != it.Reference.Reasoning || len(last.Output) != 2 {
		t.Errorf("thought %q, response %s", reasoning, last.RawJSON())
	}
	checkCall(t, it, last.Output[1].AsFunctionCall().Name, args)
}
