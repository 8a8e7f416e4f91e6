package runcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// A file of --messages may be a whole request to a chat server. Its settings count
// as if they were on the command line, where they are not.

// requestField is a setting of such a request.
type requestField struct {
	flag string // the option that comes before it
	set  func(o *options, value json.RawMessage) error
}

var requestFields = map[string]requestField{
	"max_tokens":            {"n", setMaxTokens},
	"max_completion_tokens": {"n", setMaxTokens},
	"temperature":           sampled("temp", func(s *engine.Sampling) any { return &s.Temperature }),
	"top_p":                 sampled("top-p", func(s *engine.Sampling) any { return &s.TopP }),
	"top_k":                 sampled("top-k", func(s *engine.Sampling) any { return &s.TopK }),
	"min_p":                 sampled("min-p", func(s *engine.Sampling) any { return &s.MinP }),
	"repeat_penalty":        sampled("repeat-penalty", func(s *engine.Sampling) any { return &s.RepeatPenalty }),
	"presence_penalty":      sampled("presence-penalty", func(s *engine.Sampling) any { return &s.PresencePenalty }),
	"frequency_penalty":     sampled("frequency-penalty", func(s *engine.Sampling) any { return &s.FrequencyPenalty }),
	"seed":                  sampled("seed", func(s *engine.Sampling) any { return &s.Seed }),
	"stop": {"stop", func(o *options, v json.RawMessage) error {
		var one string
		if json.Unmarshal(v, &one) == nil {
			o.Request.Stop = []string{one}
			return nil
		}
		return decodeInto(v, &o.Request.Stop, "a string or a list of strings")
	}},
	"logit_bias": {"logit-bias", func(o *options, v json.RawMessage) error {
		return decodeInto(v, &o.Request.LogitBias, "an object of token ids and numbers")
	}},
	"reasoning_effort": {"effort", func(o *options, v json.RawMessage) error {
		var level string
		if err := decodeInto(v, &level, "a string"); err != nil {
			return err
		}
		_, err := chat.ParseEffort(level)
		o.Request.Chat.Effort = level
		return err
	}},
	"response_format": {"format", func(o *options, v json.RawMessage) (err error) {
		o.Request.Grammar, err = responseFormat(v)
		return err
	}},
	"tool_choice": {"", func(o *options, v json.RawMessage) (err error) {
		o.Request.ToolChoice, err = toolChoice(v)
		return err
	}},
	"parallel_tool_calls": {"", func(o *options, v json.RawMessage) error {
		return decodeInto(v, &o.Request.ParallelCalls, "true or false")
	}},
}

// otherFields are members of a request that are read elsewhere, or that mean
// nothing to a program which answers one.
const otherFields = " messages tools model stream stream_options user n store metadata service_tier "

// setFields takes over the settings of a request.
func (o *options) setFields(name string, data []byte) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil // a list of messages
	}
	given := o.Given
	var unused, used []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := fields[key]
		field, known := requestFields[key]
		switch {
		case !known && !strings.Contains(otherFields, " "+key+" "):
			unused = append(unused, key)
		case !known, string(value) == "null", field.flag != "" && given(field.flag):
		default:
			if err := field.set(o, value); err != nil {
				return fmt.Errorf("%s: %s: %w", name, key, err)
			}
			used = append(used, field.flag)
		}
	}
	o.Given = func(flag string) bool { return given(flag) || slices.Contains(used, flag) }
	if len(unused) > 0 {
		fmt.Fprintf(o.Stderr, "warning: %s: not used: %s\n", name, terminal.OneLine(strings.Join(unused, ", ")))
	}
	return nil
}

func setMaxTokens(o *options, v json.RawMessage) error {
	if err := decodeInto(v, &o.Request.MaxTokens, "a whole number"); err != nil {
		return err
	}
	if o.Request.MaxTokens < 1 {
		return fmt.Errorf("%d, want at least 1", o.Request.MaxTokens)
	}
	return nil
}

// sampled is a setting of sampling, which comes before the model's.
func sampled(flag string, of func(*engine.Sampling) any) requestField {
	return requestField{flag, func(o *options, v json.RawMessage) error {
		var probe engine.Sampling
		if err := decodeInto(v, of(&probe), "a number"); err != nil {
			return err
		}
		before := o.Sampling
		o.Sampling = func(s engine.Sampling) engine.Sampling {
			s = before(s)
			_ = json.Unmarshal(v, of(&s)) // as above
			return s
		}
		return nil
	}}
}

// decodeInto decodes a value, or says what is wanted.
func decodeInto(v json.RawMessage, to any, want string) error {
	if err := json.Unmarshal(v, to); err != nil {
		return fmt.Errorf("%.40s: want %s", v, want)
	}
	return nil
}

// toolChoice reads OpenAI's tool_choice.
func toolChoice(v json.RawMessage) (engine.ToolChoice, error) {
	var mode string
	if json.Unmarshal(v, &mode) == nil {
		switch mode {
		case engine.ToolsAuto, engine.ToolsNone, engine.ToolsRequired:
			return engine.ToolChoice{Mode: mode}, nil
		}
		return engine.ToolChoice{}, fmt.Errorf("%q, want auto, none, required or a function", mode)
	}
	var f struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(v, &f) != nil || f.Function.Name == "" {
		return engine.ToolChoice{}, errors.New("want auto, none, required or a function with its name")
	}
	return engine.ToolChoice{Mode: engine.ToolsFunction, Name: f.Function.Name}, nil
}

// parseLogitBias reads ID=BIAS, or ID+BIAS and ID-BIAS as llama.cpp has it.
func parseLogitBias(values []string) (map[int32]float32, error) {
	bias := make(map[int32]float32, len(values))
	for _, v := range values {
		at := strings.IndexAny(v, "=+-")
		if at < 1 {
			return nil, fmt.Errorf("%q, want ID=BIAS", v)
		}
		id, err := strconv.ParseInt(v[:at], 10, 32)
		by, bad := strconv.ParseFloat(strings.TrimPrefix(v[at:], "="), 32)
		if err != nil || bad != nil || math.IsNaN(by) || math.IsInf(by, 0) {
			return nil, fmt.Errorf("%q, want the id of a token and a number", v)
		}
		bias[int32(id)] = float32(by)
	}
	return bias, nil
}
