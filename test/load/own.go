package main

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// ownQueries are greedy requests of kinds that the evaluation set has not: forms
// of answers, raw prompts and long ones.
func ownQueries() []*query {
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","maxLength":20},"minutes":{"type":"integer","minimum":0,"maximum":90},` +
		`"tags":{"type":"array","items":{"enum":["red","green","blue"]},"minItems":1,"maxItems":3}},"required":["city","minutes","tags"],"additionalProperties":false}`)
	user := func(text string) []fields { return []fields{{"role": "user", "content": text}} }
	chat := func(name string, with fields) *query {
		body := fields{"model": modelName, "temperature": 0, "max_tokens": 120, "stream": true, "reasoning_effort": "none"}
		for k, v := range with {
			body[k] = v
		}
		return &query{name: name, path: "/v1/chat/completions", body: encode(body), read: readOpenAI}
	}
	var facts strings.Builder
	for facts.Len() < 6000 { // about 1500 tokens
		facts.WriteString("The blue book is under the chair. The happy cow waits near the river. ")
	}
	return []*query{
		chat("json_schema", fields{
			"messages":        user("Set a timer in Shanghai."),
			"response_format": fields{"type": "json_schema", "json_schema": fields{"name": "timer", "strict": true, "schema": schema}},
		}),
		chat("regex", fields{"messages": user("Hi there!"), "regex": "(one|two|three)( (four|five)){20}"}),
		chat("a call that has to be", fields{
			"messages": user("What is the capital of France?"), "tool_choice": "required", "parallel_tool_calls": false,
			"tools": []fields{{"type": "function", "function": fields{"name": "set_timer", "description": "Start a timer.", "parameters": schema}}},
		}),
		chat("long prompt", fields{"messages": user(facts.String() + "Where is the blue book?")}),
		chat("penalties", fields{"messages": user("What is the capital of France?"), "frequency_penalty": 0.5, "presence_penalty": 0.5}),
		{
			name: "ollama format", path: "/api/generate", read: readOllama,
			body: encode(fields{"model": modelName, "prompt": "Set a timer.", "think": false, "format": schema, "options": fields{"temperature": 0, "num_predict": 120}}),
		},
		{
			name: "ollama raw", path: "/api/generate", read: readOllama,
			body: encode(fields{"model": modelName, "prompt": "The happy cow", "raw": true, "options": fields{"temperature": 0, "num_predict": 40}}),
		},
	}
}

// slowly makes a reader of answers take its time: it reads a few bytes and waits.
func slowly(read func(io.Reader, func()) (answer, error), rng *rand.Rand) func(io.Reader, func()) (answer, error) {
	return func(r io.Reader, first func()) (answer, error) { return read(&slowReader{r, rng}, first) }
}

type slowReader struct {
	r   io.Reader
	rng *rand.Rand
}

// Read waits after it has read, so that the server fills what lies between.
func (s *slowReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p[:min(len(p), 256)])
	time.Sleep(time.Duration(s.rng.Int64N(int64(60 * time.Millisecond))))
	return n, err
}
