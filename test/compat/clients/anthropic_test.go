package clients

import (
	"errors"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func claude() anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(serverURL), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func message(blocks ...anthropic.ContentBlockParamUnion) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: model, MaxTokens: 200, Temperature: anthropic.Float(0), Messages: []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)}}
}

func TestAnthropicMessage(t *testing.T) {
	c := claude()
	got, err := c.Messages.New(t.Context(), message(anthropic.NewTextBlock(question)))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Content) != 1 || got.Content[0].Text != wanted || got.StopReason != "end_turn" || got.Usage.OutputTokens != 13 {
		t.Errorf("answered %s", got.RawJSON())
	}
	n, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: model, Messages: message(anthropic.NewTextBlock(question)).Messages})
	if err != nil || n.InputTokens != got.Usage.InputTokens+got.Usage.CacheReadInputTokens {
		t.Errorf("error %v, %d tokens, used %+v", err, n.InputTokens, got.Usage)
	}
}

// accumulate reads a stream with the library's own accumulator.
func accumulate(t *testing.T, p anthropic.MessageNewParams) anthropic.Message {
	t.Helper()
	c := claude()
	s := c.Messages.NewStreaming(t.Context(), p)
	var m anthropic.Message
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAnthropicThinkingAndImage(t *testing.T) {
	it := task(t, "colour")
	p := message(anthropic.NewImageBlockBase64("image/png", it.mediumBase64(t)), anthropic.NewTextBlock(it.text()))
	p.Thinking = anthropic.ThinkingConfigParamOfEnabled(16384)
	m := accumulate(t, p)
	if len(m.Content) != 2 || m.Content[0].Thinking != it.Reference.Reasoning || m.Content[0].Signature == "" || m.Content[1].Text != it.Reference.Content {
		t.Errorf("answered %+v", m.Content)
	}
}

func TestAnthropicTools(t *testing.T) {
	c, it := claude(), task(t, "tool_call")
	p := message(anthropic.NewTextBlock(it.text()))
	p.Thinking = anthropic.ThinkingConfigParamOfEnabled(16384)
	for _, tool := range it.Tools {
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: tool.Function.Name, Description: anthropic.String(tool.Function.Description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: tool.Function.Parameters["properties"], ExtraFields: map[string]any{"required": tool.Function.Parameters["required"]}},
		}})
	}
	m := accumulate(t, p)
	if len(m.Content) != 2 || m.StopReason != "tool_use" {
		t.Fatalf("answered %+v", m.Content)
	}
	call := m.Content[1].AsToolUse()
	checkCall(t, it, call.Name, string(call.Input))
	p.Messages = append(p.Messages, m.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, `{"time":"12:30"}`, false)))
	got, err := c.Messages.New(t.Context(), p)
	if err != nil || got.StopReason != "end_turn" {
		t.Errorf("after the tool's result: error %v, answered %s", err, got.RawJSON())
	}
}

func TestAnthropicModelsAndErrors(t *testing.T) {
	c := claude()
	models, err := c.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != model {
		t.Errorf("error %v, models %+v", err, models)
	}
	p := message(anthropic.NewTextBlock(question))
	p.Model = "none"
	_, err = c.Messages.New(t.Context(), p)
	var bad *anthropic.Error
	if !errors.As(err, &bad) || bad.StatusCode != 404 || bad.Type() != "not_found_error" {
		t.Errorf("error %v", err)
	}
}
