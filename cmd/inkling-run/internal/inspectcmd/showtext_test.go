package inspectcmd

import (
	"strings"
	"testing"
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
