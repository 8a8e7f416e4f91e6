package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/inkling-go/inkling/internal/chat"
)

// Bounds of what a request may ask to be searched for in each piece of text.
const (
	maxStops    = 64
	maxStopSize = 1024
)

// validate names the first setting of r that can not be kept.
func (e *Engine) validate(r *Request) error {
	bad := func(param, format string, args ...any) error {
		return &RequestError{Param: param, Err: fmt.Errorf(format, args...)}
	}
	if err := r.Sampling.Validate(); err != nil {
		return &RequestError{Err: err}
	}
	if r.MaxTokens < 0 {
		return bad("max_tokens", "%d is negative", r.MaxTokens)
	}
	if len(r.Stop) > maxStops {
		return bad("stop", "%d strings, at most %d are allowed", len(r.Stop), maxStops)
	}
	for _, s := range r.Stop {
		if s == "" || len(s) > maxStopSize || !utf8.ValidString(s) {
			return bad("stop", "%.20q: want 1 to %d bytes of UTF-8", s, maxStopSize)
		}
	}
	if r.TopLogprobs < 0 || r.TopLogprobs > maxTopLogprobs {
		return bad("top_logprobs", "%d, want 0 to %d", r.TopLogprobs, maxTopLogprobs)
	}
	for id, v := range r.LogitBias {
		if id < 0 || int(id) >= e.model.Config().Vocab {
			return bad("logit_bias", "token %d, want 0 to %d", id, e.model.Config().Vocab-1)
		}
		if !(abs(v) <= math.MaxFloat32) {
			return bad("logit_bias", "%v for token %d: want a number", v, id)
		}
	}
	return e.validateTools(r)
}

// validateTools checks the tools, and the choice among them.
func (e *Engine) validateTools(r *Request) error {
	bad := func(err error) error { return &RequestError{Param: "tool_choice", Err: err} }
	functions, err := r.functions()
	if err != nil {
		return &RequestError{Param: "tools", Err: err}
	}
	if err := e.validateParameters(r, functions); err != nil {
		return err
	}
	switch r.ToolChoice.Mode {
	case "", ToolsAuto, ToolsNone:
		return nil
	case ToolsRequired, ToolsFunction:
	default:
		return bad(fmt.Errorf("%q is none of auto, none, required and function", r.ToolChoice.Mode))
	}
	named := func(f chat.Function) bool { return f.Name == r.ToolChoice.Name }
	switch {
	case len(functions) == 0:
		return bad(errors.New("a call is required, but the request has no tools"))
	case r.ToolChoice.Mode == ToolsFunction && !slices.ContainsFunc(functions, named):
		return bad(fmt.Errorf("the request has no tool %q", r.ToolChoice.Name))
	}
	if _, ok := chat.NewCalls(e.vocab, nil); !ok {
		return bad(errors.New("this model's chat template says nothing about how calls are written, so that they can not be required"))
	}
	return nil
}

// functions are the tools that the prompt declares.
func (r *Request) functions() ([]chat.Function, error) {
	tools := r.Conversation.Tools
	if r.Chat.Tools != nil {
		tools = r.Chat.Tools
	}
	return chat.Functions(tools)
}
