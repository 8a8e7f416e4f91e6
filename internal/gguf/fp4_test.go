package gguf

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestE4M3 has codes of the specification, and that every number rounds to itself and
// what is between to the nearer one.
func TestE4M3(t *testing.T) {
	for code, want := range map[byte]float32{
		0x00: 0, 0x01: 0x1p-9, 0x07: 7 * 0x1p-9, 0x08: 0x1p-6, 0x38: 1, 0x39: 1.125, 0x7e: 448, 0xfe: -448, 0xb8: -1,
	} {
		if got := E4M3(code); got != want {
			t.Errorf("code %#x is %v, want %v", code, got, want)
		}
	}
	for _, code := range []byte{0x7f, 0xff} {
		if v := E4M3(code); v == v {
			t.Errorf("code %#x is %v, want NaN", code, v)
		}
	}
	for code := range byte(0x7e) {
		a, b := E4M3(code), E4M3(code+1)
		even := code + code&1
		for x, want := range map[float32]byte{a: code, a + (b-a)*0.49: code, a + (b-a)*0.51: code + 1, (a + b) / 2: even} {
			if got := ToE4M3(x); got != want {
				t.Errorf("%v becomes %#x, want %#x", x, got, want)
			}
		}
	}
	if got := ToE4M3(1e6); got != 0x7e {
		t.Errorf("1e6 becomes %#x, want 0x7e", got)
	}
}

// TestNVFP4Block decodes a block written by hand: four scales, then 8 bytes for each
// of the groups of 16, the lower halves before the upper.
func TestNVFP4Block(t *testing.T) {
	block := make([]byte, 36)
	block[0], block[1], block[2], block[3] = 0x38, 0x40, 0x30, 0x01 // 1, 2, 0.5, 2^-9
	block[4] = 0x71                                                 // group 0: element 0 is code 1, element 8 is code 7
	block[4+8+7] = 0xa9                                             // group 1: element 7 is code 9, element 15 is code 10
	block[4+24] = 0x0f                                              // group 3: element 0 is code 15
	want := make([]float64, 64)
	want[0], want[8] = 0.5, 6
	want[16+7], want[16+15] = -0.5*2, -1*2
	want[48] = -6 * 0x1p-9
	got := make([]float64, 64)
	if err := DecodeRows64(NVFP4, got, block); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f32 := make([]float32, 64)
	if err := DecodeRows(NVFP4, f32, block); err != nil {
		t.Fatal(err)
	}
	again := make([]byte, 36)
	for i, v := range f32 {
		if float64(v) != want[i] {
			t.Errorf("element %d is %v in float32, want %v", i, v, want[i])
		}
	}
	if err := EncodeRows(NVFP4, again, f32); err != nil {
		t.Fatal(err)
	}
	if again[0] != 0x38 || again[4] != 0x71 {
		t.Errorf("encoded again: scale %#x, first byte %#x; want 0x38 and 0x71", again[0], again[4])
	}
}

// TestMXFP4Block decodes a block written by hand.
func TestMXFP4Block(t *testing.T) {
	block := make([]byte, 17)
	block[0], block[1], block[16] = 126, 0x72, 0xf1 // 2^-1; elements 0, 16, 15, 31
	want := make([]float64, 32)
	want[0], want[16], want[15], want[31] = 0.5, 3, 0.25, -3
	got := make([]float64, 32)
	if err := DecodeRows64(MXFP4, got, block); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNVFP4Range refuses what the scale of a group cannot hold.
func TestNVFP4Range(t *testing.T) {
	dst, src := make([]byte, 36), make([]float32, 64)
	for v, good := range map[float32]bool{6 * 448: true, 6*448 + 1: false, float32(math.Inf(-1)): false, float32(math.NaN()): false} {
		src[20] = v
		if err := EncodeRows(NVFP4, dst, src); (err == nil) != good {
			t.Errorf("%v: error %v", v, err)
		}
	}
}
