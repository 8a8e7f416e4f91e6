package gguf

import (
	"fmt"
	"math"
	"strings"
)

// Type is a ggml tensor type, with ggml's number (enum ggml_type in ggml.h).
type Type uint32

// The types a GGUF file can hold. Numbers missing here were removed from ggml.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
)

// layout is one row of the type table: ggml's name and the size of a block.
type layout struct {
	name         string
	elems, bytes int64
}

// layouts has ggml's type_traits, by type number; removed numbers have no name.
// Block sizes are those of the structs in ggml-common.h.
var layouts = [...]layout{
	F32:     {"f32", 1, 4},
	F16:     {"f16", 1, 2},
	Q4_0:    {"q4_0", 32, 18},
	Q4_1:    {"q4_1", 32, 20},
	Q5_0:    {"q5_0", 32, 22},
	Q5_1:    {"q5_1", 32, 24},
	Q8_0:    {"q8_0", 32, 34},
	Q8_1:    {"q8_1", 32, 36},
	Q2_K:    {"q2_K", 256, 84},
	Q3_K:    {"q3_K", 256, 110},
	Q4_K:    {"q4_K", 256, 144},
	Q5_K:    {"q5_K", 256, 176},
	Q6_K:    {"q6_K", 256, 210},
	Q8_K:    {"q8_K", 256, 292},
	IQ2_XXS: {"iq2_xxs", 256, 66},
	IQ2_XS:  {"iq2_xs", 256, 74},
	IQ3_XXS: {"iq3_xxs", 256, 98},
	IQ1_S:   {"iq1_s", 256, 50},
	IQ4_NL:  {"iq4_nl", 32, 18},
	IQ3_S:   {"iq3_s", 256, 110},
	IQ2_S:   {"iq2_s", 256, 82},
	IQ4_XS:  {"iq4_xs", 256, 136},
	I8:      {"i8", 1, 1},
	I16:     {"i16", 1, 2},
	I32:     {"i32", 1, 4},
	I64:     {"i64", 1, 8},
	F64:     {"f64", 1, 8},
	IQ1_M:   {"iq1_m", 256, 56},
	BF16:    {"bf16", 1, 2},
	TQ1_0:   {"tq1_0", 256, 54},
	TQ2_0:   {"tq2_0", 256, 66},
	MXFP4:   {"mxfp4", 32, 17},
	NVFP4:   {"nvfp4", 64, 36},
}

// known reports whether t is in the table.
func (t Type) known() bool { return int64(t) < int64(len(layouts)) && layouts[t].name != "" }

// String returns ggml's name of the type, such as "f32", "q8_0" or "q4_K".
func (t Type) String() string {
	if !t.known() {
		return fmt.Sprintf("type(%d)", uint32(t))
	}
	return layouts[t].name
}

// ParseType returns the type with ggml's name s; letter case does not matter.
func ParseType(s string) (Type, error) {
	for t, l := range layouts {
		if l.name != "" && strings.EqualFold(l.name, s) {
			return Type(t), nil
		}
	}
	return 0, unsupportedf("tensor type %q", s)
}

// Block returns how many elements one block holds and how many bytes it takes.
// Both are 0 for a number that is no type.
func (t Type) Block() (elems, bytes int64) {
	if !t.known() {
		return 0, 0
	}
	return layouts[t].elems, layouts[t].bytes
}

// RowBytes returns the bytes of a row of ne0 elements, ne0 being positive and a
// multiple of the block.
func (t Type) RowBytes(ne0 int64) (int64, error) {
	elems, bytes := t.Block()
	switch {
	case elems == 0:
		return 0, unsupportedf("tensor type %d", uint32(t))
	case ne0 <= 0:
		return 0, fmt.Errorf("row of %d elements, want at least 1", ne0)
	case ne0%elems != 0:
		return 0, fmt.Errorf("row of %d elements is not a multiple of %v's block of %d", ne0, t, elems)
	case ne0/elems > math.MaxInt64/bytes:
		return 0, fmt.Errorf("row of %d elements of %v is too large", ne0, t)
	}
	return ne0 / elems * bytes, nil
}
