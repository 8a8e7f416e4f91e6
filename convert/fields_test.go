package convert

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFields(t *testing.T) {
	parse := func(json string) *Fields {
		f, err := ParseFields("c.json", []byte(json))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, tc := range []struct {
		name, json string
		get        func(f *Fields) any
		want       any
		err        string
	}{
		{"first name", `{"a":3}`, func(f *Fields) any { return f.Int("a", "b") }, int64(3), ""},
		{"second name", `{"b":3}`, func(f *Fields) any { return f.Int("a", "b") }, int64(3), ""},
		{"null is absent", `{"a":null,"b":3}`, func(f *Fields) any { return f.Int("a", "b") }, int64(3), ""},
		{"both agree", `{"a":3,"b":3.0}`, func(f *Fields) any { return f.Int("a", "b") }, int64(3), ""},
		{"both differ", `{"a":3,"b":4}`, func(f *Fields) any { return f.Int("a", "b") }, int64(0), "c.json: a is 3 but b is 4"},
		{"none", `{"c":3}`, func(f *Fields) any { return f.Int("a", "b") }, int64(0), "c.json: a or b is missing"},
		{"default", `{}`, func(f *Fields) any { return f.IntOr(7, "a") }, int64(7), ""},
		{"largest", `{"a":2147483647}`, func(f *Fields) any { return f.Int("a") }, int64(2147483647), ""},
		{"too large", `{"a":2147483648}`, func(f *Fields) any { return f.Int("a") }, int64(0), "c.json: a is 2147483648, want a whole number from 0 to 2147483647"},
		{"negative", `{"a":-1}`, func(f *Fields) any { return f.Int("a") }, int64(0), "c.json: a is -1, want a whole number from 0 to 2147483647"},
		{"wrong kind", `{"a":[1,{"b":2}]}`, func(f *Fields) any { return f.Int("a") }, int64(0), `c.json: a is [1,{"b":2}], want a whole number from 0 to 2147483647`},
		{"float", `{"a":1e-6}`, func(f *Fields) any { return f.Float("a") }, 1e-6, ""},
		{"float beyond float32", `{"a":1e39}`, func(f *Fields) any { return f.FloatOr(1, "a") }, 1.0, "c.json: a is 1e39, want a number"},
		{"bool", `{"a":true}`, func(f *Fields) any { return f.BoolOr(false, "a") }, true, ""},
		{"bool as number", `{"a":1}`, func(f *Fields) any { return f.BoolOr(false, "a") }, false, "c.json: a is 1, want true or false"},
		{"string", `{"a":"x"}`, func(f *Fields) any { return f.StrOr("y", "a") }, "x", ""},
		{"list", `{"a":[1,2.0]}`, func(f *Fields) any { return f.Ints("a") }, []int64{1, 2}, ""},
		{"list with text", `{"a":[1,"2"]}`, func(f *Fields) any { return f.Ints("a") }, []int64(nil), `c.json: a is [1,"2"], want a list of whole numbers from 0 to 2147483647`},
		{"no list", `{}`, func(f *Fields) any { return f.Strs("a") }, []string(nil), ""},
		{"given again", `{"a":4.0,"b":[1],"n":null,"s":{"a":4,"b":[1],"n":1,"c":2}}`, func(f *Fields) any {
			f.Agree(f.Object("s"), "a", "b", "c", "n", "z")
			return nil
		}, nil, ""},
		{"given again otherwise", `{"b":[1],"s":{"b":[2]}}`, func(f *Fields) any {
			f.Agree(f.Object("s"), "b")
			return nil
		}, nil, "c.json: b is [1] but s.b is [2]"},
		{"nested", `{"a":{"b":{}}}`, func(f *Fields) any { return f.Object("a").Object("b").Int("c") }, int64(0), "c.json: a.b.c is missing"},
		{"no object", `{"a":3}`, func(f *Fields) any { return f.Object("a") == nil }, true, "c.json: a is 3, want an object"},
		{"absent object", `{"a":null}`, func(f *Fields) any { return f.Object("a") == nil }, true, ""},
		{"first error stays", `{"a":"x"}`, func(f *Fields) any {
			f.Int("a")
			return f.Int("b")
		}, int64(0), `c.json: a is "x", want a whole number from 0 to 2147483647`},
		{"objects", `{"a":[{"b":1},{"c":2}]}`, func(f *Fields) any { return f.Objects("a")[1].Int("b") }, int64(0), "c.json: a[1].b is missing"},
		{"long value", `{"a":"0123456789012345678901234567890123456789012345678901234567890123456789"}`, func(f *Fields) any { return f.Int("a") }, int64(0), `c.json: a is "01234567890123456789012345678901234567890123456789012345678…, want a whole number from 0 to 2147483647`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := parse(tc.json)
			if diff := cmp.Diff(tc.want, tc.get(f)); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			got := ""
			if f.Err() != nil {
				got = f.Err().Error()
			}
			if got != tc.err {
				t.Errorf("error %q, want %q", got, tc.err)
			}
		})
	}
}

func TestParseFieldsErrors(t *testing.T) {
	for _, tc := range []struct {
		name, json, want string
		off              int64
	}{
		{"cut off", `{"a":`, "c.json: offset 5: unexpected end of JSON input", 5},
		{"broken", `{"a":1,}`, "c.json: offset 8: invalid character '}' looking for beginning of object key string", 8},
		{"list", `[1]`, "c.json: offset 1: array, want an object", 1},
		{"null", `null`, "c.json: null, want an object", -1},
		{"empty", ``, "c.json: offset 0: unexpected end of JSON input", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseFields("c.json", []byte(tc.json))
			var format *FormatError
			if !errors.As(err, &format) || format.Off != tc.off || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestReadFieldsBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	if _, err := ReadFields(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v for no file", err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(maxJSON + 1); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if _, err := ReadFields(path); !errors.As(err, &format) {
		t.Errorf("error %v for a file that is too large", err)
	}
}

func FuzzFields(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"a":[1,2]},"c":[{"a":null}]}`))
	f.Add([]byte(`{"a":1e400}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := ParseFields("c.json", data)
		if err != nil {
			return
		}
		fields.IntOr(0, "a", "b")
		fields.Ints("a")
		fields.Strs("a")
		fields.Floats("a")
		for _, sub := range fields.Objects("c") {
			sub.BoolOr(false, "a")
		}
		if sub := fields.Object("b"); sub != nil {
			sub.Float("a")
		}
	})
}
