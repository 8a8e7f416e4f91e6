package gguf

import (
	"errors"
	"testing"
)

// TestTypes has number, name and block of each type as ggml.h and the structs of
// ggml-common.h define them.
func TestTypes(t *testing.T) {
	const half = 2
	want := map[Type]struct {
		name         string
		elems, bytes int64
	}{
		0:  {"f32", 1, 4},
		1:  {"f16", 1, half},
		2:  {"q4_0", 32, half + 16},
		3:  {"q4_1", 32, 2*half + 16},
		6:  {"q5_0", 32, half + 4 + 16},
		7:  {"q5_1", 32, 2*half + 4 + 16},
		8:  {"q8_0", 32, half + 32},
		9:  {"q8_1", 32, 2*half + 32},
		10: {"q2_K", 256, 2*half + 256/16 + 256/4},
		11: {"q3_K", 256, half + 256/4 + 256/8 + 12},
		12: {"q4_K", 256, 2*half + 12 + 256/2},
		13: {"q5_K", 256, 2*half + 12 + 256/2 + 256/8},
		14: {"q6_K", 256, half + 256/16 + 3*256/4},
		15: {"q8_K", 256, 4 + 256 + 256/16*2},
		16: {"iq2_xxs", 256, half + 256/8*2},
		17: {"iq2_xs", 256, half + 256/8*2 + 256/32},
		18: {"iq3_xxs", 256, half + 3*(256/8)},
		19: {"iq1_s", 256, half + 256/8 + 256/16},
		20: {"iq4_nl", 32, half + 16},
		21: {"iq3_s", 256, half + 13*(256/32) + 256/64},
		22: {"iq2_s", 256, half + 256/4 + 256/16},
		23: {"iq4_xs", 256, half + 2 + 256/64 + 256/2},
		24: {"i8", 1, 1},
		25: {"i16", 1, 2},
		26: {"i32", 1, 4},
		27: {"i64", 1, 8},
		28: {"f64", 1, 8},
		29: {"iq1_m", 256, 256/8 + 256/16 + 256/32},
		30: {"bf16", 1, 2},
		34: {"tq1_0", 256, half + 256/64 + (256-4*256/64)/5},
		35: {"tq2_0", 256, half + 256/4},
		39: {"mxfp4", 32, 1 + 16},
		40: {"nvfp4", 64, 64/16 + 64/2},
	}
	for typ := range Type(64) {
		w, known := want[typ]
		elems, bytes := typ.Block()
		if elems != w.elems || bytes != w.bytes {
			t.Errorf("type %d: block of %d elements, %d bytes, want %d, %d", uint32(typ), elems, bytes, w.elems, w.bytes)
		}
		if !known {
			continue
		}
		if typ.String() != w.name {
			t.Errorf("type %d is %q, want %q", uint32(typ), typ, w.name)
		}
		if got, err := ParseType(w.name); err != nil || got != typ {
			t.Errorf("ParseType(%q) = %v, %v", w.name, got, err)
		}
	}
	if got, err := ParseType("Q4_k"); err != nil || got != Q4_K {
		t.Errorf("ParseType in other case: %v, %v", got, err)
	}
	for _, s := range []string{"", "q4_k_m", "q4_2"} {
		var unsupported *UnsupportedError
		if got, err := ParseType(s); !errors.As(err, &unsupported) {
			t.Errorf("ParseType(%q) = %v, %v", s, got, err)
		}
	}
	if got := Type(4).String(); got != "type(4)" {
		t.Errorf("removed type is %q", got)
	}
}

func TestRowBytes(t *testing.T) {
	for _, tt := range []struct {
		typ  Type
		ne0  int64
		want int64 // 0: error
	}{
		{F32, 3, 12},
		{Q8_0, 64, 68},
		{Q4_K, 512, 288},
		{Q8_0, 33, 0},
		{F32, 0, 0},
		{F32, -4, 0},
		{F64, 1 << 60, 0},
		{Type(5), 32, 0},
	} {
		got, err := tt.typ.RowBytes(tt.ne0)
		if got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("%v.RowBytes(%d) = %d, %v, want %d", tt.typ, tt.ne0, got, err, tt.want)
		}
	}
}
