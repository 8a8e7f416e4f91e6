package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// decoded has a field of each kind that requests have.
type decoded struct {
	samplingFields
	Text   string          `json:"text"`
	Flag   bool            `json:"flag"`
	Count  *int            `json:"count"`
	Small  int32           `json:"small"`
	Ratio  float64         `json:"ratio"`
	List   []string        `json:"list"`
	Map    map[string]int  `json:"map"`
	Raw    json.RawMessage `json:"raw"`
	Nested struct {
		A []decoded `json:"a"`
	} `json:"nested"`
	Strings stringList `json:"strings"`
}

func TestDecode(t *testing.T) {
	var got decoded
	err := decodeJSON([]byte(` {"text":"a<\u00e9","flag":true,"count":3.0,"small":-5,"ratio":1e2,"list":["x","y"],"map":{"k":1},"unknown":{"x":[1,{"y":null}]},`+
		`"raw" : {"b": [1, 2], "a":"<"} ,"nested":{"a":[{"text":"in"},{"strings":"one"}]},"strings":["p","q"],"temperature":0.5,"seed":null,"Text":"other"}`), &got)
	if err != nil {
		t.Fatal(err)
	}
	half, three := 0.5, 3
	want := decoded{
		samplingFields: samplingFields{Temperature: &half}, Text: "a<é", Flag: true, Count: &three, Small: -5, Ratio: 100, List: []string{"x", "y"},
		Map: map[string]int{"k": 1}, Raw: json.RawMessage(`{"b": [1, 2], "a":"<"}`), Strings: stringList{"p", "q"},
	}
	want.Nested.A = []decoded{{Text: "in"}, {Strings: stringList{"one"}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(decoded{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeErrors(t *testing.T) {
	for body, want := range map[string]string{
		`{"text":1}`:                          "text: is a number, want a string",
		`{"flag":"true"}`:                     "flag: is a string, want a boolean",
		`{"count":1.5}`:                       "count: is 1.5, want a whole number",
		`{"count":[]}`:                        "count: is an array, want a number",
		`{"small":3000000000}`:                "small: 3000000000 is out of range",
		`{"ratio":1e999}`:                     "ratio: 1e999 is out of range",
		`{"list":{}}`:                         "list: is an object, want an array",
		`{"list":["a",2]}`:                    "list[1]: is a number, want a string",
		`{"map":{"k":true}}`:                  "map.k: is a boolean, want a number",
		`{"nested":{"a":[{},{"list":[1]}]}}`:  "nested.a[1].list[0]: is a number, want a string",
		`{"strings":{"a":1}}`:                 "strings: is an object, want an array",
		`{"text":"a"`:                         "the body is not JSON: unexpected EOF",
		`{"text":"a",}`:                       "the body is not JSON: ",
		`{"text" "a"}`:                        "the body is not JSON: ",
		`nil`:                                 "the body is not JSON: ",
		``:                                    "the body is not JSON: unexpected EOF",
		`"text"`:                              "the body is a string, want an object",
		`{} {}`:                               "the body goes on after its JSON object",
		"{\"text\":\"\xc3\"}":                 "the body is not valid UTF-8",
		strings.Repeat(`{"x":`, maxDepth+1):   "the body is nested deeper than 128",
		`{"raw":` + strings.Repeat("[", 1000): "the body is nested deeper than 128",
	} {
		var got decoded
		if err := decodeJSON([]byte(body), &got); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s: error %v, want %s", body, err, want)
		}
	}
}

// FuzzDecode: whatever the bytes, there is a request or an error that is the
// client's, and what is no JSON is never a request.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}],"stop":["a"],"logit_bias":{"1":2}}`,
		`{"messages":[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"x"}],"tools":[{"function":{"name":"f","parameters":{}}}]}`,
		`{"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}},"tool_choice":{"type":"function","function":{"name":"f"}},"reasoning_effort":0.5}`,
		`{"a":[[[[]]]],"n":1e5,"seed":-0}`, `{"stop":null}`, `[`, `{"`, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r chatRequest
		err := decodeJSON(data, &r)
		if err == nil {
			if !json.Valid(data) {
				t.Fatalf("%q is a request", data)
			}
			_, err = r.turn()
		}
		if err != nil && asError(err).Status != http.StatusBadRequest {
			t.Fatalf("%q: %v", data, err)
		}
	})
}
