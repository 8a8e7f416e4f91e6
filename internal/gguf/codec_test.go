package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
)

// f16Value is the value of an F16 number that is not NaN, from the definition of
// the format: 1 sign, 5 exponent, 10 mantissa bits.
func f16Value(h uint16) float64 {
	exp, mant := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1024+mant, exp-15-10)
	switch exp {
	case 0:
		v = math.Ldexp(mant, -14-10)
	case 31:
		v = math.Inf(1)
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return v
}

func isNaN16(h uint16) bool { return h&0x7fff > 0x7c00 }

// encode16 and decode16 convert one value through the exported functions.
func encode16(t *testing.T, typ Type, bits uint32) uint16 {
	t.Helper()
	var b [2]byte
	if err := EncodeRows(typ, b[:], []float32{math.Float32frombits(bits)}); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint16(b[:])
}

func decode16(t *testing.T, typ Type, h uint16) uint32 {
	t.Helper()
	var x [1]float32
	if err := DecodeRows(typ, x[:], binary.LittleEndian.AppendUint16(nil, h)); err != nil {
		t.Fatal(err)
	}
	return math.Float32bits(x[0])
}

// TestF16 checks each F16 number both ways, and the rounding on both sides of and
// at the middle between each and the next.
func TestF16(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got := decode16(t, F16, h)
		if isNaN16(h) {
			// Sign and payload stay, the quiet bit is set; and back.
			want := uint32(h&0x8000)<<16 | 0x7fc00000 | uint32(h&0x3ff)<<13
			if back := encode16(t, F16, got); got != want || back != h|0x200 {
				t.Fatalf("NaN %#04x: decoded %#08x, want %#08x; encoded again %#04x", h, got, want, back)
			}
			continue
		}
		if want := math.Float32bits(float32(f16Value(h))); got != want {
			t.Fatalf("%#04x decodes to %#08x, want %#08x", h, got, want)
		}
		if back := encode16(t, F16, got); back != h {
			t.Fatalf("%#04x encodes again as %#04x", h, back)
		}
		if h&0x7fff == 0x7c00 {
			continue // no number after infinity
		}
		next := f16Value(h&0x7fff + 1)
		if math.IsInf(next, 0) {
			next = 65536 // where the next number would be: the rule of IEEE 754 for overflow
		}
		middle := math.Float32bits(float32((f16Value(h&0x7fff) + next) / 2)) // exact in float32
		sign := uint32(h&0x8000) << 16
		if got := encode16(t, F16, sign|(middle-1)); got != h {
			t.Fatalf("just below the middle after %#04x: %#04x", h, got)
		}
		if got := encode16(t, F16, sign|middle); got != h+h&1 {
			t.Fatalf("at the middle after %#04x: %#04x, want the even %#04x", h, got, h+h&1)
		}
		if got := encode16(t, F16, sign|(middle+1)); got != h+1 {
			t.Fatalf("just above the middle after %#04x: %#04x", h, got)
		}
	}
}

// TestBF16 is TestF16 for BF16, whose numbers are the upper halves of float32.
func TestBF16(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got := decode16(t, BF16, h)
		if want := uint32(h) << 16; got != want {
			t.Fatalf("%#04x decodes to %#08x, want %#08x", h, got, want)
		}
		back := encode16(t, BF16, got)
		if h&0x7fff > 0x7f80 {
			if back != h|0x40 {
				t.Fatalf("NaN %#04x encodes again as %#04x, want %#04x", h, back, h|0x40)
			}
			continue
		}
		if back != h {
			t.Fatalf("%#04x encodes again as %#04x", h, back)
		}
		if h&0x7fff == 0x7f80 {
			continue
		}
		middle := uint32(h)<<16 | 0x8000
		for off, want := range map[int32]uint16{-1: h, 0: h + h&1, 1: h + 1} {
			if got := encode16(t, BF16, middle+uint32(off)); got != want {
				t.Fatalf("%#04x and a half %+d: %#04x, want %#04x", h, off, got, want)
			}
		}
	}
	// A NaN with its payload in the lower half must not become infinity.
	if got := encode16(t, BF16, 0xff800001); got != 0xffc0 {
		t.Errorf("NaN 0xff800001 encodes as %#04x, want 0xffc0", got)
	}
}

func TestF16OfFloat32(t *testing.T) {
	for _, tt := range []struct {
		name string
		bits uint32
		want uint16
	}{
		{"largest float32", 0x7f7fffff, 0x7c00},
		{"smallest float32", 0x00000001, 0},
		{"minus smallest float32", 0x80000001, 0x8000},
		{"65519.996, the last that rounds down", 0x477fefff, 0x7bff},
		{"65520, the first that rounds to infinity", 0x477ff000, 0x7c00},
		{"2^-25, a tie with zero", 0x33000000, 0},
		{"just above 2^-25", 0x33000001, 1},
		{"signalling NaN with a low payload", 0x7f800001, 0x7e00},
	} {
		if got := encode16(t, F16, tt.bits); got != tt.want {
			t.Errorf("%s: %#04x, want %#04x", tt.name, got, tt.want)
		}
	}
}

func TestF32Rows(t *testing.T) {
	src := []float32{0, 1, -2.5, math.MaxFloat32, float32(math.Inf(-1))}
	b := make([]byte, 4*len(src))
	if err := EncodeRows(F32, b, src); err != nil {
		t.Fatal(err)
	}
	want := []byte{
		0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0, 0xff, 0xff, 0x7f, 0x7f, 0, 0, 0x80, 0xff,
	}
	if !bytes.Equal(b, want) {
		t.Errorf("encoded % x, want % x", b, want)
	}
	got := make([]float32, len(src))
	if err := DecodeRows(F32, got, b); err != nil {
		t.Fatal(err)
	}
	for i := range src {
		if got[i] != src[i] {
			t.Errorf("element %d: %g, want %g", i, got[i], src[i])
		}
	}
}

// readFloats takes n float32 from the front of b.
func readFloats(b []byte, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// TestQ8_0EqualsGGML compares with blocks that ggml's quantize_row_q8_0_ref made
// (testdata/golden.c): zeros, exact halves, numbers just below a half, a scale that
// vanishes in F16 and 60 blocks of many magnitudes.
func TestQ8_0EqualsGGML(t *testing.T) {
	const n = 64 * 32
	file, err := os.ReadFile("testdata/q8_0.bin")
	if err != nil {
		t.Fatal(err)
	}
	src, want := readFloats(file, n), file[4*n:]
	got := make([]byte, n/32*34)
	if err := EncodeRows(Q8_0, got, src); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(got); i += 34 {
		if !bytes.Equal(got[i:i+34], want[i:i+34]) {
			t.Errorf("block %d\n got % x\nwant % x", i/34, got[i:i+34], want[i:i+34])
		}
	}
	// Decoding is exact: an int8 times an F16 number fits float32.
	x := make([]float32, n)
	if err := DecodeRows(Q8_0, x, want); err != nil {
		t.Fatal(err)
	}
	for i, v := range x {
		block := want[i/32*34:]
		d := f16Value(binary.LittleEndian.Uint16(block))
		if q := float64(int8(block[2+i%32])); float64(v) != d*q {
			t.Fatalf("element %d is %g, want %g * %g", i, v, d, q)
		}
	}
}

func TestQ4_0EqualsGGML(t *testing.T) {
	const n = 64 * 32
	file, err := os.ReadFile("testdata/q4_0.bin")
	if err != nil {
		t.Fatal(err)
	}
	blocks, want := file[:n/32*18], readFloats(file[n/32*18:], n)
	got := make([]float32, n)
	if err := DecodeRows(Q4_0, got, blocks); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("element %d is %g, want %g", i, got[i], want[i])
		}
	}
}

func TestRowsRefuse(t *testing.T) {
	with := func(x float32) []float32 {
		s := make([]float32, 64)
		s[40] = x
		return s
	}
	encode := func(typ Type, dst int, src []float32) error { return EncodeRows(typ, make([]byte, dst), src) }
	decode := func(typ Type, dst, src int) error { return DecodeRows(typ, make([]float32, dst), make([]byte, src)) }
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"encode: part of a block", encode(Q8_0, 34, make([]float32, 31)), "31 elements are not a multiple"},
		{"encode: short output", encode(F16, 3, make([]float32, 2)), "3 bytes, want 4"},
		{"encode: long output", encode(F32, 9, make([]float32, 2)), "9 bytes, want 8"},
		{"decode: part of a block", decode(Q4_0, 33, 18), "33 elements are not a multiple"},
		{"decode: short input", decode(BF16, 2, 3), "3 bytes, want 4"},
		{"decode: long input", decode(Q8_0, 32, 35), "35 bytes, want 34"},
		{"q8_0 of NaN", encode(Q8_0, 68, with(float32(math.NaN()))), "block 1: largest magnitude is NaN"},
		{"q8_0 of infinity", encode(Q8_0, 68, with(float32(math.Inf(-1)))), "block 1: largest magnitude is +Inf"},
		{"q8_0 beyond its scale", encode(Q8_0, 68, with(1e7)), "block 1: largest magnitude is 1e+07"},
	} {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, tt.err, tt.want)
		}
	}
	for _, err := range []error{
		encode(Q4_K, 144, make([]float32, 256)), encode(Q4_0, 18, make([]float32, 32)), encode(99, 0, nil),
		decode(Q4_K, 256, 144), decode(99, 0, 0),
	} {
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) {
			t.Errorf("error %v, want an UnsupportedError", err)
		}
	}
}

func TestRowsEmpty(t *testing.T) {
	for _, typ := range []Type{F32, F16, BF16, Q8_0} {
		if err := EncodeRows(typ, nil, nil); err != nil {
			t.Errorf("encode %v: %v", typ, err)
		}
		if err := DecodeRows(typ, nil, nil); err != nil {
			t.Errorf("decode %v: %v", typ, err)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	const n = 1 << 16
	src := make([]float32, n)
	for i := range src {
		src[i] = float32(math.Sin(float64(i)*1.7)) / 50 // the magnitude of weights
	}
	for _, typ := range []Type{F32, F16, BF16, Q8_0, Q4_0} {
		elems, size := typ.Block()
		rows := make([]byte, n/elems*size)
		if typ != Q4_0 {
			b.Run("encode/"+typ.String(), func(b *testing.B) {
				b.SetBytes(4 * n)
				for b.Loop() {
					if err := EncodeRows(typ, rows, src); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		dst := make([]float32, n)
		b.Run("decode/"+typ.String(), func(b *testing.B) {
			b.SetBytes(4 * n)
			for b.Loop() {
				if err := DecodeRows(typ, dst, rows); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
