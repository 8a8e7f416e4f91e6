package main

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShortValue(t *testing.T) {
	long := strings.Repeat("a", 59)
	for _, tc := range []struct {
		v           any
		typ, pretty string
	}{
		{uint32(7), "u32", "7"},
		{int64(-7), "i64", "-7"},
		{float32(1e-6), "f32", "1e-06"},
		{0.5, "f64", "0.5"},
		{true, "bool", "true"},
		{"a\x1b[2J\n", "string", `"a\x1b[2J\n"`},
		{long + "b", "string", `"` + long + `b"`},
		{long + "bc", "string", `"` + long + `b"... (61 bytes)`},
		{long + "中", "string", `"` + long + `"... (62 bytes)`},
		{[]uint8{1, 2}, "u8[2]", "[1, 2]"},
		{[]string{"a", "b"}, "string[2]", `["a", "b"]`},
		{[]bool{}, "bool[0]", "[]"},
		{[]int32{1, 2, 3, 4, 5, 6, 7, 8}, "i32[8]", "[1, 2, 3, 4, 5, 6, 7, 8]"},
		{[]int32{1, 2, 3, 4, 5, 6, 7, 8, 9}, "i32[9]", "[1, 2, 3, 4, 5, 6, 7, 8, ...]"},
	} {
		if got := shortValue(tc.v); got != tc.pretty {
			t.Errorf("shortValue(%#v) = %s, want %s", tc.v, got, tc.pretty)
		}
		if got := valueType(tc.v); got != tc.typ {
			t.Errorf("valueType(%#v) = %s, want %s", tc.v, got, tc.typ)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		n             int64
		bytes, params string
	}{
		{0, "0 B", "0"},
		{999, "999 B", "999"},
		{1000, "1.0 KB", "1.0K"},
		{999_949, "999.9 KB", "999.9K"},
		{999_950, "1.0 MB", "1.0M"},
		{266e9, "266.0 GB", "266.0B"},
		{1.9e12, "1.9 TB", "1.9T"},
		{math.MaxInt64, "9.2 EB", "9223372.0T"},
	} {
		if got := byteSize(tc.n); got != tc.bytes {
			t.Errorf("byteSize(%d) = %q, want %q", tc.n, got, tc.bytes)
		}
		if got := parameters(tc.n); got != tc.params {
			t.Errorf("parameters(%d) = %q, want %q", tc.n, got, tc.params)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"blk.0.attn_q.weight": "blk.0.attn_q.weight", "中": "中", "a\x1b[m": `"a\x1b[m"`, "\xff": `"\xff"`} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestJSONValue has the floats that JSON has no numbers for.
func TestJSONValue(t *testing.T) {
	in := map[string]any{
		"nan": math.NaN(), "inf": float32(math.Inf(-1)), "array": []float32{1.5, float32(math.NaN())},
		"bytes": []uint8{1, 2}, "float": float32(0.1), "text": "x",
	}
	for key, v := range in {
		in[key] = jsonValue(v)
	}
	var b strings.Builder
	if err := encodeJSON(&b, in); err != nil {
		t.Fatal(err)
	}
	const want = `{"array":[1.5,"NaN"],"bytes":[1,2],"float":0.1,"inf":"-Inf","nan":"NaN","text":"x"}` + "\n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
