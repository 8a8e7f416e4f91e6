package grammar

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestKeywords(t *testing.T) {
	for _, test := range []struct {
		name, schema string
		yes, no      []string
	}{
		{"true", `true`, []string{`1`, `{"a":[]}`, `"x"`}, []string{``, `{`, ` 1`}},
		{"any", `{}`, []string{`null`, `[1, "a"]`}, []string{`nul`}},
		{"annotations", `{"title":"t","description":"d","default":1,"$comment":"","x-order":1,"type":"null"}`, []string{`null`}, []string{`1`}},
		{"types", `{"type":["string","null"]}`, []string{`"a"`, `null`}, []string{`1`}},
		{"nullable", `{"type":"boolean","nullable":true}`, []string{`true`, `null`}, []string{`1`}},
		{"integer", `{"type":"integer"}`, []string{`0`, `-7`, `999999999999999999`}, []string{`01`, `-0`, `1.0`, `1e2`, `1000000000000000000`}},
		{"number", `{"type":"number"}`, []string{`0`, `-0.50`, `1e10`, `2E-9`}, []string{`.5`, `1.`, `+1`, `1e100`, `1e`}},
		{"string escapes", `{"type":"string"}`, []string{`"\u00e9\n\/"`, `"\ud83d\ude00"`, "\"\x7f\"", `"😀"`}, []string{`"\ud83d"`, `"\ude00"`, `"\ud83d\u0041"`, "\"\n\"", `"\x"`, "\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\""}},
		{"length in characters", `{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"日本語"`, `"\ud83d\ude00\n"`}, []string{`"a"`, `"abcd"`, `"\ud83d\ude00"`, `""`}},
		{"length implies string", `{"minLength":1}`, []string{`"a"`}, []string{`""`, `1`}},
		{"pattern is a search", `{"type":"string","pattern":"b+"}`, []string{`"b"`, `"abbc"`}, []string{`""`, `"ac"`}},
		{"pattern anchored", `{"type":"string","pattern":"^[a-c]{2}$"}`, []string{`"ab"`}, []string{`"a"`, `"abc"`}},
		{"pattern half anchored", `{"type":"string","pattern":"^a|z$"}`, []string{`"ab"`, `"bz"`}, []string{`"b"`}},
		{"pattern escapes", `{"type":"string","pattern":"^\\u00e9\\/\\d\\\"$"}`, []string{`"é/1\""`}, []string{`"e/1\""`}},
		{"pattern and length", `{"type":"string","pattern":"^(ab)*$","minLength":3,"maxLength":5}`, []string{`"abab"`}, []string{`"ab"`, `"ababab"`, `""`}},
		{"two patterns", `{"allOf":[{"type":"string","pattern":"a"},{"pattern":"b"}]}`, []string{`"ab"`, `"ba"`}, []string{`"a"`}},
		{"date", `{"type":"string","format":"date"}`, []string{`"2000-02-29"`, `"2023-12-31"`}, []string{`"1900-02-29"`, `"2023-04-31"`, `"2023-13-01"`}},
		{"ipv6", `{"format":"ipv6"}`, []string{`"::"`, `"1::8"`, `"1:2:3:4:5:6:7:8"`}, []string{`"1:2"`, `"1::2::3"`, `"1:2:3:4:5:6:7:8:9"`}},
		{"int32", `{"type":"integer","format":"int32"}`, []string{`2147483647`, `-2147483648`}, []string{`2147483648`, `-2147483649`}},
		{"integer bounds", `{"type":"integer","minimum":-12,"exclusiveMaximum":105}`, []string{`-12`, `0`, `-1`, `99`, `104`}, []string{`-13`, `105`, `-100`, `110`, `1040`}},
		{"number bounds", `{"type":"number","minimum":0,"maximum":1}`, []string{`0`, `1`, `0.5`, `1.00`, `0.99999`}, []string{`-0.1`, `1.01`, `2`, `1e0`, `10`}},
		{"number bounds inside", `{"type":"number","exclusiveMinimum":-1.25,"exclusiveMaximum":-0.5}`, []string{`-1.2`, `-1.24999`, `-0.51`, `-1`}, []string{`-1.25`, `-0.5`, `-0.50`, `0`, `-1.250`, `-2`, `1`}},
		{"positive", `{"type":"number","exclusiveMinimum":0}`, []string{`0.001`, `1`, `10.5`}, []string{`0`, `0.0`, `-1`}},
		{"multipleOf", `{"type":"integer","multipleOf":7,"minimum":0}`, []string{`0`, `14`, `7007`}, []string{`1`, `15`, `-7`}},
		{"cents", `{"type":"number","multipleOf":0.01}`, []string{`1.25`, `3`, `-0.1`}, []string{`1.255`}},
		{"even number", `{"type":"number","multipleOf":2}`, []string{`4`}, []string{`3`}},
		{"enum", `{"enum":["a\n",1,true,null,{"a":[1]}]}`, []string{`"a\n"`, `1`, `true`, `null`, `{"a":[1]}`}, []string{`"a"`, `2`, `{"a":[]}`}},
		{"enum within type", `{"type":"string","enum":["a","bb",1],"maxLength":1}`, []string{`"a"`}, []string{`1`, `"bb"`}},
		{"const", `{"const":"x\"y"}`, []string{`"x\"y"`}, []string{`"x"`}},
		{"items", `{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}`, []string{`[1]`, `[1, 2,3]`, "[\n  1,\n  2\n]"}, []string{`[]`, `[1,2,3,4]`, `["a"]`, `[1,]`}},
		{"any items", `{"type":"array"}`, []string{`[]`, `[1,"a",{}]`}, []string{`[,]`}},
		{"no items", `{"type":"array","items":false}`, []string{`[]`}, []string{`[1]`}},
		{"tuple", `{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]}`, []string{`[1,"a"]`}, []string{`[1]`, `["a",1]`, `[1,"a",2]`}},
		{"tuple with more", `{"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":0}`, []string{`[]`, `[1]`, `[1,null,null]`}, []string{`[null]`, `[1,1]`}},
		{"tuple of draft 7", `{"type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"null"}}`, []string{`[1]`, `[1,null]`}, []string{`[1,1]`}},
		{"objects", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"},"c":{}},"required":["c","a"]}`, []string{`{"a":1,"c":[]}`, `{"a": 1, "b": null, "c": 2}`}, []string{`{"a":1}`, `{"c":1,"a":1}`, `{"a":1,"c":1,"d":1}`, `{"a":1,"a":1,"c":1}`}},
		{"optional members", `{"type":"object","properties":{"a":{"const":1},"b":{"const":2}}}`, []string{`{}`, `{"b":2}`, `{"a":1,"b":2}`, "{\n\t\"a\": 1\n}"}, []string{`{,}`, `{"a":1,}`, `{"b":2,"a":1}`, `{   }`}},
		{"additional members", `{"type":"object","properties":{"ab":{"const":1}},"additionalProperties":{"type":"null"}}`, []string{`{"ab":1,"a":null,"abc":null}`, `{"x":null}`}, []string{`{"ab":null}`, `{"\u0061b":null}`, `{"x":1}`}},
		{"required and not declared", `{"type":"object","required":["k"]}`, []string{`{"k":1}`, `{"k":[],"z":1}`}, []string{`{}`, `{"z":1}`}},
		{"map", `{"type":"object","additionalProperties":{"type":"integer"}}`, []string{`{}`, `{"q":1,"r":2}`}, []string{`{"q":"1"}`}},
		{"anyOf beside properties", `{"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, []string{`{"a":1}`, `{"b":2}`}, []string{`{}`}},
		{"allOf closes", `{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false},{"properties":{"a":{"minimum":3},"b":{}}}]}`, []string{`{"a":3}`, `{}`}, []string{`{"a":2}`, `{"b":1}`}},
		{"ref with siblings", `{"$ref":"#/definitions/n","maximum":5,"definitions":{"n":{"type":"integer","minimum":3}}}`, []string{`3`, `5`}, []string{`2`, `6`}},
		{"ref escapes", `{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"const":1}}}`, []string{`1`}, []string{`2`}},
		{"recursion", `{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"]}`, []string{`{"next":null}`, `{"next":{"next":null}}`}, []string{`{"next":{}}`}},
		{"recursion merged", `{"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}},"allOf":[{"$ref":"#/$defs/a"},{"type":"array","maxItems":1}]}`, []string{`[]`, `[[[],[]]]`}, []string{`[[],[]]`}},
		{"oneOf is anyOf", `{"oneOf":[{"type":"integer"},{"type":"number"}]}`, []string{`1`, `1.5`}, []string{`"a"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkTexts(t, schemaGrammar(t, test.schema), test.yes, test.no)
		})
	}
}

func TestRefusedKeywords(t *testing.T) {
	for _, keyword := range []string{
		"not", "if", "then", "else", "patternProperties", "propertyNames", "dependentSchemas", "dependentRequired", "dependencies", "uniqueItems",
		"contains", "minContains", "unevaluatedProperties", "unevaluatedItems", "minProperties", "maxProperties", "$dynamicRef", "$anchor", "unknownWord",
	} {
		_, err := FromJSONSchema(fmt.Appendf(nil, `{"properties":{"a/b":{"type":"object",%q:{}}}}`, keyword))
		var u *UnsupportedError
		if !errors.As(err, &u) || u.Keyword != keyword || u.Path != "#/properties/a~1b" {
			t.Errorf("%s: %v", keyword, err)
		}
	}
	for _, test := range []struct{ schema, keyword string }{
		{`{"pattern":"(?=a)b"}`, "lookahead"},
		{`{"pattern":"(?<!a)b"}`, "lookbehind"},
		{`{"pattern":"(a)\\1"}`, "backreference"},
		{`{"pattern":"\\bfoo"}`, `\b`},
		{`{"pattern":"a{2000}"}`, "repetition"},
		{`{"format":"iri"}`, "format"},
		{`{"type":"number","multipleOf":0.3}`, "multipleOf"},
		{`{"$ref":"http://example.com/s"}`, "$ref"},
		{`{"properties":{"a":{"$id":"x"}}}`, "$id"},
		{`{"enum":[[1]],"minItems":1}`, "enum"},
		{`{"type":"integer","minimum":1000000000000000000}`, "minimum"},
		{`{"type":"number","exclusiveMaximum":-1e18}`, "exclusiveMaximum"},
	} {
		_, err := FromJSONSchema([]byte(test.schema))
		var u *UnsupportedError
		if !errors.As(err, &u) || u.Keyword != test.keyword || !strings.Contains(err.Error(), "#") {
			t.Errorf("%s: %v", test.schema, err)
		}
	}
}

// The largest number that is written satisfies a bound; only the next has no text.
func TestBoundOfMostDigits(t *testing.T) {
	if _, err := FromJSONSchema([]byte(`{"type":"integer","minimum":999999999999999999}`)); err != nil {
		t.Error(err)
	}
}

func TestBadSchemas(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 200) + "{}" + strings.Repeat("}", 200)
	for _, test := range []struct {
		name, schema string
		is           error // nil: a SyntaxError
	}{
		{"empty", ``, nil},
		{"cut", `{"type":`, nil},
		{"two", `{} {}`, nil},
		{"number", `1`, nil},
		{"twice", `{"type":"null","type":"null"}`, nil},
		{"no type", `{"type":"text"}`, nil},
		{"length", `{"minLength":-1}`, nil},
		{"dangling", `{"$ref":"#/$defs/a"}`, nil},
		{"endless", `{"$ref":"#"}`, nil},
		{"endless by two", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}`, nil},
		{"draft 4", `{"minimum":1,"exclusiveMinimum":true}`, nil},
		{"bad pattern", `{"pattern":"("}`, nil},
		{"false", `false`, ErrUnsatisfiable},
		{"types apart", `{"allOf":[{"type":"string"},{"type":"null"}]}`, ErrUnsatisfiable},
		{"bounds apart", `{"type":"integer","minimum":3,"maximum":2}`, ErrUnsatisfiable},
		{"lengths apart", `{"minLength":3,"maxLength":2}`, ErrUnsatisfiable},
		{"never ends", `{"properties":{"a":{"$ref":"#"}},"required":["a"]}`, ErrUnsatisfiable},
		{"forbidden and required", `{"properties":{},"additionalProperties":false,"required":["a"]}`, ErrUnsatisfiable},
		{"deep", deep, ErrTooLarge},
		{"long", `{"description":"` + strings.Repeat("a", maxSchemaBytes) + `"}`, ErrTooLarge},
		{"long number", `{"minimum":0.` + strings.Repeat("1", maxNumberDigits) + `}`, ErrTooLarge},
		{"many items", `{"type":"array","minItems":1000000}`, ErrTooLarge},
		{"huge exponent", `{"minimum":1e999999999}`, ErrTooLarge},
		{"branches", `{"allOf":[` + strings.Repeat(`{"anyOf":[{"maxLength":1},{"maxLength":2}]},`, 12) + `{}]}`, ErrTooLarge},
		{"blow up", `{"pattern":"a.{900}$"}`, ErrTooLarge},
	} {
		_, err := FromJSONSchema([]byte(test.schema))
		var s *SyntaxError
		if test.is == nil && !errors.As(err, &s) || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
