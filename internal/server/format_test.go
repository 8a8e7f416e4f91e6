package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestStructuredOutput: answers are valid against the schema of the request,
// however little the model wants to write JSON.
func TestStructuredOutput(t *testing.T) {
	h := sharedServer(t)
	for _, tt := range []struct{ name, schema string }{
		{"object", `{"type":"object","properties":{"city":{"type":"string","maxLength":20},"people":{"type":"integer","minimum":0,"maximum":99}},"required":["city","people"],"additionalProperties":false}`},
		{"enum", `{"enum":["red","green",7,null]}`},
		{"array", `{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":4}`},
		{"reference", `{"$defs":{"n":{"type":"integer","minimum":1,"maximum":9}},"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},"required":["a","b"],"additionalProperties":false}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, effort := range []string{"none", "high"} {
				for seed := range 3 {
					body := fmt.Sprintf(`"model":"tiny","temperature":1.5,"seed":%d,"max_tokens":400,"reasoning_effort":%q,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":%s}},`+
						`"messages":[{"role":"user","content":"What is the capital of France?"}]`, seed, effort, tt.schema)
					got := bothWays(t, h, body).Choices[0]
					if *got.FinishReason != "stop" {
						t.Errorf("the end: %s", *got.FinishReason)
					}
					checkSchema(t, tt.schema, got.Message.Content.text)
				}
			}
		})
	}
}

func checkSchema(t *testing.T, schema, text string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///schema", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("mem:///schema")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Errorf("%q is not JSON: %v", text, err)
		return
	}
	if err := compiled.Validate(answer); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

func TestOtherFormats(t *testing.T) {
	h := sharedServer(t)
	const user = `,"messages":[{"role":"user","content":"What is the capital of France?"}]`
	var resp chatResponse
	askOK(t, h, "/v1/chat/completions", `{`+greedy+user+`,"regex":"(Rome|Bern)!"}`, &resp)
	if got := resp.Choices[0].Message.Content.text; got != "Rome!" && got != "Bern!" {
		t.Errorf("regex: %q", got)
	}
	askOK(t, h, "/v1/chat/completions", `{`+greedy+user+`,"grammar":"root ::= \"no\" | \"yes\""}`, &resp)
	if got := resp.Choices[0].Message.Content.text; got != "no" && got != "yes" {
		t.Errorf("grammar: %q", got)
	}
	// A JSON object may be as long as the model likes, so only its beginning is sure.
	askOK(t, h, "/v1/chat/completions", `{"model":"tiny","temperature":1,"seed":1,"max_tokens":300,"reasoning_effort":"none"`+user+`,"response_format":{"type":"json_object"}}`, &resp)
	text := resp.Choices[0].Message.Content.text
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || *resp.Choices[0].FinishReason == "stop" && !json.Valid([]byte(text)) {
		t.Errorf("json_object: %q", text)
	}
}

// TestUnsupportedSchema names the keyword.
func TestUnsupportedSchema(t *testing.T) {
	h := sharedServer(t)
	status, data := ask(t, h, "/v1/chat/completions", `{`+greedy+`,"messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","unevaluatedProperties":false,"dependentSchemas":{"a":{"required":["b"]}}}}}}`)
	if msg, _, param, _ := errorOf(t, data); status != 400 || param != "response_format.json_schema.schema" || !strings.Contains(msg, "unevaluatedProperties") && !strings.Contains(msg, "dependentSchemas") {
		t.Errorf("status %d: %s", status, data)
	}
}

// TestToolChoice: a call is made if it has to be, and not if it must not.
func TestToolChoice(t *testing.T) {
	h := sharedServer(t)
	const tools = `,"tools":[{"type":"function","function":{"name":"get_time","description":"Get the local time of a city.","parameters":{"type":"object","properties":{"city":{"type":"string","maxLength":30}},"required":["city"],"additionalProperties":false}}},` +
		`{"type":"function","function":{"name":"set_timer","description":"Start a timer.","parameters":{"type":"object","properties":{"minutes":{"type":"integer"}},"required":["minutes"],"additionalProperties":false}}}]`
	for _, tt := range []struct{ name, choice, question, call string }{
		{"auto", `"auto"`, "Tell me the time in Shanghai.", "get_time"},
		{"none", `"none"`, "Tell me the time in Shanghai.", ""},
		{"required", `"required"`, "What is the capital of France?", "any"},
		{"named", `{"type":"function","function":{"name":"set_timer"}}`, "What is the capital of France?", "set_timer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := bothWays(t, h, `"model":"tiny","temperature":0,"max_tokens":200,"reasoning_effort":"none","messages":[{"role":"user","content":`+quote(tt.question)+`}],"tool_choice":`+tt.choice+tools).Choices[0]
			calls := got.Message.ToolCalls
			if tt.call == "" {
				if len(calls) > 0 {
					t.Errorf("calls %s", quote(calls))
				}
				return
			}
			if len(calls) == 0 || tt.call != "any" && calls[0].Function.Name != tt.call {
				t.Fatalf("answered %s, want a call of %s", quote(got), tt.call)
			}
			var args map[string]any
			if err := json.Unmarshal([]byte(calls[0].Function.Arguments), &args); err != nil {
				t.Errorf("arguments %q: %v", calls[0].Function.Arguments, err)
			}
			if *got.FinishReason != "tool_calls" {
				t.Errorf("the end: %s", *got.FinishReason)
			}
		})
	}
}
