package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// errorOf reads an error in OpenAI's shape.
func errorOf(t *testing.T, data []byte) (message, typ, param, code string) {
	t.Helper()
	var v struct {
		Error *struct {
			Message, Type string
			Param, Code   *string
		}
	}
	if err := json.Unmarshal(data, &v); err != nil || v.Error == nil {
		t.Fatalf("no error in %q: %v", data, err)
	}
	for _, p := range []struct {
		to   *string
		from *string
	}{{&param, v.Error.Param}, {&code, v.Error.Code}} {
		if p.from != nil {
			*p.to = *p.from
		}
	}
	return v.Error.Message, v.Error.Type, param, code
}

// TestBadFields: each wrong field is named.
func TestBadFields(t *testing.T) {
	h := sharedServer(t)
	const user = `"messages":[{"role":"user","content":"Hi"}]`
	for _, tt := range []struct{ name, body, param, message string }{
		{"no messages", `{"model":"tiny"}`, "messages", "is empty"},
		{"messages of a wrong type", `{"messages":"Hi"}`, "messages", "is a string, want an array"},
		{"message of a wrong type", `{"messages":[1]}`, "messages[0]", "is a number, want an object"},
		{"no role", `{"messages":[{"content":"Hi"}]}`, "messages[0].role", "is missing"},
		{"unknown role", `{"messages":[{"role":"king","content":"Hi"}]}`, "messages[0].role", `"king" is not known`},
		{"no content", `{"messages":[{"role":"user"}]}`, "messages[0].content", "is missing"},
		{"content of a wrong type", `{"messages":[{"role":"user","content":1}]}`, "messages[0].content", "is a number, want a string or an array"},
		{"unknown part", `{"messages":[{"role":"user","content":[{"type":"smell"}]}]}`, "messages[0].content[0].type", `"smell" is not known`},
		{"no URL", `{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"image_url","image_url":{}}]}]}`, "messages[1].content[1].image_url.url", "is missing"},
		{"URL of a wrong type", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":1}}]}]}`, "messages[0].content[0].image_url.url", "is a number, want a string"},
		{"unknown detail", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,","detail":"huge"}}]}]}`, "messages[0].content[0].image_url.detail", `"huge"`},
		{"no audio", `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"format":"wav"}}]}]}`, "messages[0].content[0].input_audio.data", "is missing"},
		{"no picture", `{"messages":[{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`, "messages[1].content[1]", "not an image"},
		{"no base64", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%"}}]}]}`, "messages[0].content[0]", "base64"},
		{"file id", `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]}`, "messages[0].content[0].file.file_id", "not kept"},
		{"file of an unknown kind", `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]}`, "messages[0].content[0].file.file_data", "application/pdf"},
		{"frames", `{"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"data:,"},"num_frames":0}]}]}`, "messages[0].content[0].num_frames", "want 1 to"},
		{"too many frames", `{"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"data:,"},"num_frames":4097}]}]}`, "messages[0].content[0].num_frames", "want 1 to 4096"},
		{"frames a second", `{"messages":[{"role":"user","content":[{"type":"video_url","video_url":{"url":"data:,"},"fps":1e9}]}]}`, "messages[0].content[0].fps", "at most 1000"},
		{"user calls tools", `{"messages":[{"role":"user","content":"Hi","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]}`, "messages[0].tool_calls", "only an assistant"},
		{"call without a name", `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{}}]}]}`, "messages[0].tool_calls[0].function.name", "is missing"},
		{"arguments that are no JSON", `{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{"}}]}]}`, "messages[0].tool_calls[0].function.arguments", "not a JSON object"},
		{"text without text", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text"}]}]}`, "messages[0].content[1].text", "is missing"},
		{"text that is null", `{"messages":[{"role":"user","content":[{"type":"text","text":null}]}]}`, "messages[0].content[0].text", "is missing"},
		{"result without an id", `{"messages":[{"role":"user","content":"a"},{"role":"tool","content":"b"}]}`, "messages[1].tool_call_id", "is missing"},
		{"old call", `{"messages":[{"role":"assistant","content":"a","function_call":{}}]}`, "messages[0].function_call", "old form"},

		{"tool of another type", `{` + user + `,"tools":[{"type":"web_search"}]}`, "tools[0].type", "web_search"},
		{"tool without a name", `{` + user + `,"tools":[{"type":"function","function":{}}]}`, "tools[0].function.name", "is missing"},
		{"tool with a name of words", `{` + user + `,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"get time"}}]}`, "tools[1].function.name", "want 1 to 128 letters"},
		{"tool with a long name", `{` + user + `,"tools":[{"type":"function","function":{"name":"` + strings.Repeat("a", 129) + `"}}]}`, "tools[0].function.name", "want 1 to 128 letters"},
		{"tool with a line break in its name", `{` + user + `,"tools":[{"type":"function","function":{"name":"a\n"}}]}`, "tools[0].function.name", `"a\n"`},
		{"parameters that are no schema", `{"model":"tiny",` + user + `,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"n":{"type":"thing"}}}}}]}`, "tools[1].function.parameters", `at #/properties/n/type: "thing" is no type`},
		{"parameters that can not be kept", `{"model":"tiny",` + user + `,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","not":{}}}}]}`, "tools[0].function.parameters", `"not" is not supported at #`},
		{"parameters of a wrong type", `{` + user + `,"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]}`, "tools[0].function.parameters", "not an object"},
		{"two tools of a name", `{` + user + `,"tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}]}`, "tools[1].function.name", "two tools"},
		{"unknown choice", `{` + user + `,"tool_choice":"maybe"}`, "tool_choice", `"maybe"`},
		{"required without tools", `{` + user + `,"tool_choice":"required"}`, "tool_choice", "no tools"},
		{"choice of no tool", `{` + user + `,"tool_choice":{"type":"function","function":{"name":"g"}}}`, "tool_choice.function.name", "none of the tools"},

		{"effort", `{` + user + `,"reasoning_effort":"very"}`, "reasoning_effort", `"very"`},
		{"effort as a number", `{` + user + `,"reasoning_effort":2}`, "reasoning_effort", `"2"`},
		{"format", `{` + user + `,"response_format":{"type":"xml"}}`, "response_format.type", `"xml"`},
		{"no schema", `{` + user + `,"response_format":{"type":"json_schema"}}`, "response_format.json_schema.schema", "is missing"},
		{"bad schema", `{` + user + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"nothing"}}}}`, "response_format.json_schema.schema", ""},
		{"grammar", `{` + user + `,"grammar":"root ::= ("}`, "grammar", ""},
		{"empty grammar", `{` + user + `,"grammar":""}`, "grammar", "is empty"},
		{"empty regex", `{` + user + `,"regex":""}`, "regex", "is empty"},
		{"regex and grammar", `{` + user + `,"regex":"a","grammar":"root ::= \"a\""}`, "regex", "does not go together"},
		{"empty schema", `{` + user + `,"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`, "response_format.json_schema.schema", "is empty"},
		{"schema that is a text", `{` + user + `,"response_format":{"type":"json_schema","json_schema":{"schema":""}}}`, "response_format.json_schema.schema", "not a schema"},
		{"empty schema of an object", `{` + user + `,"response_format":{"type":"json_object","schema":{}}}`, "response_format.schema", "is empty"},
		{"large grammar", `{` + user + `,"grammar":"` + strings.Repeat(" ", maxFormat+1) + `"}`, "grammar", "at most 262144 are allowed"},
		{"temperature", `{` + user + `,"temperature":-1}`, "temperature", "is -1, want at least 0"},
		{"temperature of more than a float32", `{` + user + `,"temperature":1e300}`, "temperature", "is 1e+300, want 0 to 3.4"},
		{"temperature of a wrong type", `{` + user + `,"temperature":"hot"}`, "temperature", "is a string, want a number"},
		{"top_p", `{` + user + `,"top_p":1.5}`, "top_p", "want 0 to 1"},
		{"top_k", `{` + user + `,"top_k":-2}`, "top_k", "want 0"},
		{"presence penalty", `{` + user + `,"presence_penalty":3}`, "presence_penalty", "want -2 to 2"},
		{"repeat penalty", `{` + user + `,"repeat_penalty":0}`, "repeat_penalty", "want more than 0"},
		{"seed", `{` + user + `,"seed":1.5}`, "seed", "want a whole number"},
		{"logit bias id", `{` + user + `,"logit_bias":{"the":1}}`, "logit_bias", `"the"`},
		{"logit bias", `{` + user + `,"logit_bias":{"5":101}}`, "logit_bias.5", "want -100 to 100"},
		{"n", `{` + user + `,"n":9}`, "n", "want 1 to 8"},
		{"stop", `{` + user + `,"stop":["a",""]}`, "stop", "want 1 to"},
		{"many stops", `{` + user + `,"stop":["` + strings.Repeat(`a","`, maxStops) + `a"]}`, "stop", "has 17 sequences, at most 16 are allowed"},
		{"long stop", `{` + user + `,"stop":"` + strings.Repeat("a", maxStop+1) + `"}`, "stop", "of 1025 bytes"},
		{"stop of a wrong type", `{` + user + `,"stop":[1]}`, "stop[0]", "is a number, want a string"},
		{"max_tokens", `{` + user + `,"max_tokens":0}`, "max_tokens", "want at least 1"},
		{"max_completion_tokens", `{` + user + `,"max_completion_tokens":-5}`, "max_completion_tokens", "want at least 1"},
		{"top_logprobs alone", `{` + user + `,"top_logprobs":2}`, "top_logprobs", "needs logprobs"},
		{"top_logprobs", `{` + user + `,"logprobs":true,"top_logprobs":21}`, "top_logprobs", "want 0 to 20"},
		{"stream of a wrong type", `{` + user + `,"stream":"yes"}`, "stream", "want a boolean"},
		{"functions", `{` + user + `,"functions":[]}`, "functions", "old form"},
		{"audio out", `{` + user + `,"modalities":["text","audio"]}`, "modalities", "in text"},

		{"no JSON", `{"model":`, "", "not JSON"},
		{"no object", `[]`, "", "is an array, want an object"},
		{"more than JSON", `{` + user + `}{}`, "", "goes on"},
		{"too deep", `{"metadata":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "", "nested deeper"},
		{"not UTF-8", "{\"model\":\"\xff\"}", "", "UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, data := ask(t, h, "/v1/chat/completions", tt.body)
			msg, typ, param, _ := errorOf(t, data)
			if status != http.StatusBadRequest || typ != "invalid_request_error" || param != tt.param || !strings.Contains(msg, tt.message) {
				t.Errorf("status %d, type %s, param %q: %s", status, typ, param, msg)
			}
			if tt.param != "" && !strings.HasPrefix(msg, tt.param+": ") {
				t.Errorf("the message does not begin with the field: %s", msg)
			}
		})
	}
}

// TestErrorShapes: every route's errors are those of its protocol.
func TestErrorShapes(t *testing.T) {
	h := sharedServer(t)
	long := strings.Repeat("The sky is blue. ", 1000)
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		want                     string // in the body
	}{
		{"unknown model", "POST", "/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"Hi"}]}`, 404, `"code":"model_not_found"`},
		{"unknown model in the list", "GET", "/v1/models/a/b", "", 404, `"code":"model_not_found"`},
		{"context", "POST", "/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":"` + long + `"}]}`, 400, `"code":"context_length_exceeded"`},
		{"wrong method", "GET", "/v1/chat/completions", "", 405, `"type":"invalid_request_error"`},
		{"unknown route", "GET", "/v1/nothing", "", 404, `"type":"invalid_request_error"`},
		{"unknown Ollama route", "GET", "/api/nothing", "", 404, `{"error":"/api/nothing: no such route"}`},
		{"unknown Anthropic route", "GET", "/v1/messages/nothing", "", 404, `"type":"not_found_error"`},
		{"picture that is none", "POST", "/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,AAAA"}]}]}`, 400, "data URL"},
		{"base64 that is none", "POST", "/v1/chat/completions", `{"model":"tiny","messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,!"}]}]}`, 400, "not base64"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequest(tt.method, h.URL+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			rec := httptest.NewRecorder()
			shared.s.ServeHTTP(rec, req)
			if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.want) || rec.Header().Get("Content-Type") != "application/json" {
				t.Errorf("status %d: %s", rec.Code, rec.Body)
			}
			if tt.status == 405 && rec.Header().Get("Allow") != "POST" {
				t.Errorf("Allow: %q", rec.Header().Get("Allow"))
			}
		})
	}
}

// TestBodyTooLarge: a body is not read further than the limit.
func TestBodyTooLarge(t *testing.T) {
	o := testOptions(t)
	o.MaxBody = 1000
	_, h := newTestServer(t, o)
	status, data := ask(t, h, "/v1/chat/completions", `{"model":"`+strings.Repeat("x", 2000)+`"}`)
	if msg, _, _, _ := errorOf(t, data); status != http.StatusRequestEntityTooLarge || !strings.Contains(msg, "--max-body") {
		t.Errorf("status %d: %s", status, data)
	}
}

// TestBadTools: names and parameters that are no good are named in the words of
// each API, in streams too, and so is what is more than a request may have.
func TestBadTools(t *testing.T) {
	h := sharedServer(t)
	name := strings.Repeat("é", 3)
	bad := `{"type":"object","properties":{"n":{"type":"thing"}}}`
	const pathOfBad = "#/properties/n/type"
	for _, tt := range []struct{ name, path, body, want string }{
		{"OpenAI, stream", "/v1/chat/completions", `{"model":"tiny","stream":true,"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + bad + `}}]}`, "tools[0].function.parameters: "},
		{"Ollama", "/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":` + bad + `}}]}`, "tools[0].function.parameters: "},
		{"Ollama, name", "/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"` + name + `"}}]}`, "tools[0].function.name: "},
		{"Ollama, empty schema", "/api/chat", `{"model":"tiny","messages":[{"role":"user","content":"Hi"}],"format":{}}`, "format: is empty"},
		{"Anthropic", "/v1/messages", `{"model":"tiny","max_tokens":5,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"f","input_schema":` + bad + `}]}`, "tools[0].input_schema: "},
		{"Anthropic, stream", "/v1/messages", `{"model":"tiny","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"f","input_schema":` + bad + `}]}`, "tools[0].input_schema: "},
		{"Anthropic, name", "/v1/messages", `{"model":"tiny","max_tokens":5,"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"` + name + `","input_schema":{"type":"object"}}]}`, "tools[0].name: "},
		{"Anthropic, text", "/v1/messages", `{"model":"tiny","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content[0].text: is missing"},
		{"Anthropic, result without an id", "/v1/messages", `{"model":"tiny","max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result","content":"a"}]}]}`, "messages[0].content[0].tool_use_id: is missing"},
		{"Anthropic, empty schema", "/v1/messages", `{"model":"tiny","max_tokens":5,"messages":[{"role":"user","content":"Hi"}],"output_config":{"format":{"type":"json_schema","schema":{}}}}`, "output_config.format.schema: is empty"},
		{"responses", "/v1/responses", `{"model":"tiny","input":"Hi","tools":[{"type":"function","name":"f","parameters":` + bad + `}]}`, "tools[0].parameters: "},
		{"responses, stream", "/v1/responses", `{"model":"tiny","input":"Hi","stream":true,"tools":[{"type":"function","name":"f","parameters":` + bad + `}]}`, "tools[0].parameters: "},
		{"responses, name", "/v1/responses", `{"model":"tiny","input":"Hi","tools":[{"type":"function","name":"` + name + `"}]}`, "tools[0].name: "},
		{"responses, text", "/v1/responses", `{"model":"tiny","input":[{"role":"user","content":[{"type":"input_text"}]}]}`, "input[0].content[0].text: is missing"},
		{"responses, empty schema", "/v1/responses", `{"model":"tiny","input":"Hi","text":{"format":{"type":"json_schema","name":"n","schema":{}}}}`, "text.format.schema: is empty"},
		{"completions, many prompts", "/v1/completions", `{"model":"tiny","prompt":["` + strings.Repeat(`a","`, maxPrompts) + `a"]}`, "prompt: has 65 texts, want 1 to 64"},
		{"completions, log-probabilities", "/v1/completions", `{"model":"tiny","prompt":"a","logprobs":6}`, "logprobs: is 6, want 0 to 5"},
		{"embeddings, many texts", "/v1/embeddings", `{"model":"tiny","input":["` + strings.Repeat(`a","`, maxEmbedTexts) + `a"]}`, "input: has 2049 texts, want 1 to 2048"},
		{"Ollama, many texts", "/api/embed", `{"model":"tiny","input":["` + strings.Repeat(`a","`, maxEmbedTexts) + `a"]}`, "input: has 2049 texts, at most 2048"},
		{"completions, empty grammar", "/v1/completions", `{"model":"tiny","prompt":"Hi","grammar":" "}`, "grammar: is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, data := ask(t, h, tt.path, tt.body)
			if status != http.StatusBadRequest || !strings.Contains(string(data), tt.want) {
				t.Errorf("status %d, want %q: %s", status, tt.want, data)
			}
			if strings.Contains(tt.body, "thing") && !strings.Contains(string(data), pathOfBad) {
				t.Errorf("no place within the schema: %s", data)
			}
		})
	}
}

// TestToolNames: what MCP's servers call their tools is taken.
func TestToolNames(t *testing.T) {
	h := sharedServer(t)
	for _, name := range []string{"f", "get_time", "a-b", "server.tool", strings.Repeat("x", 128)} {
		status, data := ask(t, h, "/v1/chat/completions", `{`+greedy+`,"max_tokens":1,"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"`+name+`"}}]}`)
		if status != http.StatusOK {
			t.Errorf("%s: status %d: %s", name, status, data)
		}
	}
}

// TestUnknownModelName: of a name that nobody has no more than 100 characters come
// back, and no half ones.
func TestUnknownModelName(t *testing.T) {
	h := sharedServer(t)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"%","messages":[{"role":"user","content":"Hi"}]}`,
		"/v1/embeddings":       `{"model":"%","input":"Hi"}`,
		"/v1/responses":        `{"model":"%","input":"Hi"}`,
		"/api/chat":            `{"model":"%","messages":[{"role":"user","content":"Hi"}]}`,
		"/api/show":            `{"model":"%"}`,
		"/v1/messages":         `{"model":"%","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`,
	} {
		status, data := ask(t, h, path, strings.Replace(body, "%", strings.Repeat("é", 5000), 1))
		if n := strings.Count(string(data), "é"); status != http.StatusNotFound || n != 100 {
			t.Errorf("%s: status %d, %d characters of the name: %.300s", path, status, n, data)
		}
	}
}
