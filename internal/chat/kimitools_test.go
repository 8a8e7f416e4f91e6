package chat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTypescriptTools declares functions; the expected texts follow from the rules of the published encoder by hand.
func TestTypescriptTools(t *testing.T) {
	for _, tc := range []struct {
		name, function string // members of the function after its name f
		want           string // its declaration
	}{
		{"nothing", ``, "type f = (_: {}) => any;"},
		{"description of lines", `,"description":"a\n\nb"`, "// a\n\n// b\ntype f = (_: {}) => any;"},
		{
			"required first, each group sorted", `,"parameters":{"type":"object","required":["z","b"],"properties":{"z":{"type":"string"},
				"a":{"type":"integer"},"b":{"type":"boolean"},"c":{"type":"number"}}}`,
			"type f = (_: {\n  b: boolean,\n  z: string,\n  a?: number,\n  c?: number\n}) => any;",
		},
		{
			"comments", `,"parameters":{"type":"object","properties":{"s":{"type":"string","description":"one\ntwo","pattern":"^a","minLength":1,"maxLength":9,
				"minimum":3},"i":{"type":"integer","maximum":5,"minimum":1.0,"default":3},"t":{"type":"string","default":"x\"ü"},
				"b":{"type":"boolean","default":false},"l":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2,"default":["a",{"k":1}]}}}`,
			"type f = (_: {\n  // Default: False\n  b?: boolean,\n  // maximum: 5, minimum: 1.0\n  // Default: 3\n  i?: number,\n" +
				"  // maxItems: 2, minItems: 1\n  // Default: [\"a\", {\"k\": 1}]\n  l?: Array<string>,\n" +
				"  // one\n  // two\n  // maxLength: 9, minLength: 1, pattern: ^a\n  s?: string,\n  // Default: \"x\\\"ü\"\n  t?: string\n}) => any;",
		},
		{
			"nested", `,"parameters":{"type":"object","required":["o"],"properties":{"o":{"type":"object","description":"O","properties":{
				"l":{"type":"array","items":{"type":"object","description":"E","properties":{"x":{"type":"null"}}}}}},"e":{"type":"object"},"a":{"type":"array"}}}`,
			"type f = (_: {\n  // O\n  o: {\n    l?: Array<\n      // E\n      {\n        x?: null\n      }\n    >\n  },\n  a?: Array<any>,\n  e?: {}\n}) => any;",
		},
		{
			"alternatives", `,"parameters":{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"integer"}}]},
				"b":{"enum":["x",1,2.5,true,null],"type":"string"},"c":{"type":["string","null","integer","object","array"]},"d":{},"e":true,"g":false}}`,
			"type f = (_: {\n  a?: string | Array<number>,\n  b?: \"x\" | 1 | 2.5 | True | None,\n  c?: string | null | number | {} | Array<any>,\n" +
				"  d?: any,\n  e?: any,\n  g?: null\n}) => any;",
		},
		{
			"additional members", `,"parameters":{"type":"object","properties":{"a":{"type":"object","additionalProperties":true},
				"b":{"type":"object","additionalProperties":false},"c":{"type":"object","additionalProperties":{"type":"integer"}}}}`,
			"type f = (_: {\n  a?: {\n    [k: string]: any\n  },\n  b?: {\n    [k: string]: never\n  },\n  c?: {\n    [k: string]: number\n  }\n}) => any;",
		},
		{
			"definitions", `,"description":"D","parameters":{"type":"object","$defs":{"T":{"type":"object","description":"tree","properties":{
				"next":{"$ref":"#/$defs/T"}}},"C":{"enum":["r"]}},"properties":{"t":{"$ref":"#/$defs/T","description":"root"}}}`,
			"interface C \"r\"\n// tree\ninterface T {\n  next?: T\n}\n// D\ntype f = (_: {\n  // root\n  t?: T\n}) => any;",
		},
		{
			"parameters that hold themselves", `,"parameters":{"type":"object","required":["b"],"properties":{"b":{"type":"string"},"a":{"$ref":"#"}}}`,
			"interface parameters {\n  a?: parameters,\n  b: string\n}\ntype f = (_: parameters) => any;",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			const head = "# Tools\n\n## functions\nnamespace functions {\n"
			function := `{"name":"f"` + tc.function + `}`
			for _, tool := range []string{`{"type":"function","function":` + function + `}`, function} {
				got, ok := typescriptTools([]Tool{Tool(tool)})
				if d := cmp.Diff(head+tc.want+"\n}\n", got); d != "" || !ok {
					t.Errorf("ok %v (-want +got):\n%s", ok, d)
				}
			}
		})
	}
}

// TestTypescriptList declares several tools; those of another kind are left out.
func TestTypescriptList(t *testing.T) {
	got, ok := typescriptTools([]Tool{
		Tool(`{"type":"function","function":{"name":"a"}}`), Tool(`{"type":"_plugin","function":{"name":"b"}}`),
		Tool(`{"type":"function","function":{"name":"c","description":"C"}}`),
	})
	want := "# Tools\n\n## functions\nnamespace functions {\ntype a = (_: {}) => any;\n// C\ntype c = (_: {}) => any;\n}\n"
	if got != want || !ok {
		t.Errorf("%q, %v; want %q", got, ok, want)
	}
}

// TestTypescriptRefuses has schemas that the style cannot say: the tools are declared as JSON then.
func TestTypescriptRefuses(t *testing.T) {
	deep := strings.Repeat(`{"anyOf":[`, 300) + `{}` + strings.Repeat(`]}`, 300)
	for name, parameters := range map[string]string{
		"no type": `{"type":"object","properties":{"a":{"minimum":1}}}`, "parameters": `[]`,
		"reference": `{"type":"object","properties":{"a":{"$ref":"#/$defs/T"}}}`, "foreign reference": `{"type":"object","properties":{"a":{"$ref":"x"}}}`,
		"description": `{"type":"object","properties":{"a":{"type":"string","description":1}}}`,
		"enum":        `{"type":"object","properties":{"a":{"enum":[[1]]}}}`, "anyOf": `{"type":"object","properties":{"a":{"anyOf":1}}}`,
		"type": `{"type":"object","properties":{"a":{"type":1}}}`, "types": `{"type":"object","properties":{"a":{"type":["any"]}}}`,
		"schema": `{"type":"object","properties":{"a":1}}`, "nesting": `{"type":"object","properties":{"a":` + deep + `}}`,
	} {
		if got, ok := typescriptTools([]Tool{Tool(`{"type":"function","function":{"name":"f","parameters":` + parameters + `}}`)}); ok {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, tool := range []string{`1`, `{"type":"function","function":{"description":"x"}}`, `{"type":"other","function":{"name":"f"}}`, `{`} {
		if got, ok := typescriptTools([]Tool{Tool(tool)}); ok {
			t.Errorf("%s: %q", tool, got)
		}
	}
}
