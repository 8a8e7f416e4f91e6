package convert

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

func TestRowMap(t *testing.T) {
	gateI, upI := Interleaved(3)
	gateB, upB := Blocked(3)
	for _, tc := range []struct {
		name string
		m    RowMap
		want []int64 // of two matrices of six rows
	}{
		{"all", RowMap{}, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"interleaved gate", gateI, []int64{0, 2, 4, 6, 8, 10}},
		{"interleaved up", upI, []int64{1, 3, 5, 7, 9, 11}},
		{"blocked gate", gateB, []int64{0, 1, 2, 6, 7, 8}},
		{"blocked up", upB, []int64{3, 4, 5, 9, 10, 11}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []int64
			for r := range int64(len(tc.want)) {
				got = append(got, tc.m.source(r))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCountNonFinite(t *testing.T) {
	le := binary.LittleEndian
	inf, nan := math.Inf(1), math.NaN()
	f32 := func(v ...float64) (b []byte) {
		for _, x := range v {
			b = le.AppendUint32(b, math.Float32bits(float32(x)))
		}
		return b
	}
	f64 := func(v ...float64) (b []byte) {
		for _, x := range v {
			b = le.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	u16 := func(v ...uint16) (b []byte) {
		for _, x := range v {
			b = le.AppendUint16(b, x)
		}
		return b
	}
	for _, tc := range []struct {
		name string
		d    safetensors.DType
		data []byte
		want int64
	}{
		{"f64", safetensors.F64, f64(1, nan, -math.MaxFloat64, -inf, 0), 2},
		{"f32", safetensors.F32, f32(1, nan, math.MaxFloat32, inf, -inf, 5e-45, -math.MaxFloat32), 3},
		{"f32 odd count", safetensors.F32, f32(0, 0, nan), 1},
		{"bf16", safetensors.BF16, u16(0x3f80, 0x7f80, 0xff80, 0x7f7f, 0xff7f, 0x7f81, 0xffff, 0x8000, 0x7fc0), 5},
		{"f16", safetensors.F16, u16(0x3c00, 0x7c00, 0xfc00, 0x7bff, 0xfbff, 0x7c01, 0x83ff), 3},
		{"none", safetensors.BF16, nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := countNonFinite(tc.d, tc.data); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// sectionOf returns bytes as a reader of them.
func sectionOf(data []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
}

// bytesOf gives every checkpoint tensor the same bytes.
func bytesOf(data []byte) dataOf {
	return func(safetensors.Tensor) *io.SectionReader { return sectionOf(data) }
}

// counts are the weights of a run that need attention.
type counts struct {
	nonFinite, beyond int64
	first             string // the checkpoint tensor with the first that is no number
}

// encode converts a tensor into memory, by chunks of some bytes.
func encode(t *testing.T, x Tensor, data dataOf, to gguf.Type, size int64, workers int) ([]byte, counts) {
	t.Helper()
	w, out := writingOf(t, x, data, to, size, workers)
	err := w.each(context.Background(), w.units, w.convert)
	var c counts
	if all := w.nonFinite(); all != nil {
		c = counts{nonFinite: all.Count, first: all.First}
	}
	var beyond *RangeError
	var bad *NonFiniteError
	if errors.As(err, &beyond) {
		c.beyond = beyond.Count
	} else if err != nil && !errors.As(err, &bad) {
		t.Fatal(err)
	}
	return out, c
}

// writingOf is a run that makes one tensor, and the bytes that it will have.
func writingOf(t *testing.T, x Tensor, data dataOf, to gguf.Type, size int64, workers int) (*writing, []byte) {
	t.Helper()
	o, err := newTarget(x, "", to)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, o.rows*o.rowBytes)
	o.write = func(p []byte, off int64) error {
		copy(out[off:], p)
		return nil
	}
	list, err := unitsOf([]*target{o}, data, size)
	if err != nil {
		t.Fatal(err)
	}
	return &writing{
		src: &Source{Tensors: new(safetensors.Checkpoint)}, o: Options{Workers: workers, AllowNaN: true},
		targets: []*target{o}, units: list,
	}, out
}

// TestEncode converts one row of 32 elements, the first ones as given.
func TestEncode(t *testing.T) {
	le := binary.LittleEndian
	row := func(n int, first ...byte) []byte { return append(first, make([]byte, n-len(first))...) }
	f32 := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = le.AppendUint32(b, math.Float32bits(x))
		}
		return row(128, b...)
	}
	f64 := func(v ...float64) (b []byte) {
		for _, x := range v {
			b = le.AppendUint64(b, math.Float64bits(x))
		}
		return row(256, b...)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tc := range []struct {
		name string
		from safetensors.DType
		data []byte
		to   gguf.Type
		want []byte // nil: do not compare
		c    counts
	}{
		{"bf16 as it is", "BF16", row(64, 0x80, 0x3f), gguf.BF16, row(64, 0x80, 0x3f), counts{}},
		{"bf16 to f32", "BF16", row(64, 0x80, 0x3f), gguf.F32, f32(1), counts{}},
		{"f16 to f32", "F16", row(64, 0x00, 0x3c, 0x01, 0x00), gguf.F32, f32(1, 0x1p-24), counts{}},
		{"f32 to bf16, ties to even", "F32", f32(0x1.01p0, 0x1.03p0), gguf.BF16, row(64, 0x80, 0x3f, 0x82, 0x3f), counts{}},
		{"f64 to f32", "F64", f64(1.5, 1e-300), gguf.F32, f32(1.5), counts{}},
		{"f64 beyond f32", "F64", f64(1e300, -1e300), gguf.F32, f32(inf, -inf), counts{beyond: 2}},
		{"f32 beyond f16", "F32", f32(65504, 65520), gguf.F16, row(64, 0xff, 0x7b, 0x00, 0x7c), counts{beyond: 1}},
		{"f32 beyond bf16", "F32", f32(math.MaxFloat32), gguf.BF16, row(64, 0x80, 0x7f), counts{beyond: 1}},
		{"infinite stays", "F32", f32(inf, 1), gguf.F16, row(64, 0x00, 0x7c, 0x00, 0x3c), counts{nonFinite: 1}},
		{"nan", "F32", f32(nan, -inf, 65520), gguf.F16, nil, counts{nonFinite: 2, beyond: 1}},
		{"f32 to q8_0", "F32", f32(127, -1), gguf.Q8_0, row(34, 0x00, 0x3c, 127, 0xff), counts{}},
		{"f32 beyond q8_0", "F32", f32(1e7, 1), gguf.Q8_0, nil, counts{beyond: 1}},
		{"nan to q8_0", "F32", f32(nan, 1), gguf.Q8_0, nil, counts{nonFinite: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := Tensor{Name: "x", Dims: []int64{32, 1}, Parts: []Part{{N: 1, From: safetensors.Tensor{DType: tc.from}}}}
			got, c := encode(t, x, bytesOf(tc.data), tc.to, 1, 2)
			if tc.want != nil && !bytes.Equal(got, tc.want) {
				t.Errorf("%x\nwant %x", got, tc.want)
			}
			if c != tc.c {
				t.Errorf("counts %+v, want %+v", c, tc.c)
			}
		})
	}
}

// TestPipeOrder converts rows that hold their number, in chunks of every size, and
// with a map that makes chunks cross from one slab into the next.
func TestPipeOrder(t *testing.T) {
	const slabs, half, ne0 = 5, 7, 3
	var data []byte
	for r := range slabs * 2 * half {
		for range ne0 {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(r)))
		}
	}
	gate, _ := Interleaved(half)
	x := Tensor{
		Name: "x", Dims: []int64{ne0, half, slabs},
		Parts: []Part{{N: half * slabs, From: safetensors.Tensor{DType: safetensors.F32}, Rows: gate}},
	}
	for _, to := range []gguf.Type{gguf.F32, gguf.BF16} { // copied and converted
		for _, size := range []int64{1, 25, 100, 1 << 20} {
			for _, workers := range []int{1, 3} {
				t.Run(fmt.Sprintf("%v/%d bytes/%d workers", to, size, workers), func(t *testing.T) {
					out, _ := encode(t, x, bytesOf(data), to, size, workers)
					got := make([]float32, slabs*half*ne0)
					if err := gguf.DecodeRows(to, got, out); err != nil {
						t.Fatal(err)
					}
					for i, v := range got {
						if want := float32(2 * (i / ne0)); v != want {
							t.Fatalf("element %d is %v, want %v", i, v, want)
						}
					}
				})
			}
		}
	}
}

// TestStops ends conversions in the middle.
func TestStops(t *testing.T) {
	x := Tensor{Name: "x", Dims: []int64{1, 1000}, Parts: []Part{{N: 1000, From: safetensors.Tensor{DType: safetensors.F32}}}}
	full, why := errors.New("disk full"), errors.New("enough")
	for _, want := range []error{full, why} {
		w, _ := writingOf(t, x, bytesOf(make([]byte, 4000)), gguf.F16, 1, 2)
		ctx, cancel := context.WithCancelCause(context.Background())
		var written atomic.Int64
		w.targets[0].write = func(p []byte, _ int64) error {
			if written.Add(int64(len(p))) < 100 {
				return nil
			}
			cancel(why)
			if want == full {
				return full
			}
			return nil
		}
		if err := w.each(ctx, w.units, w.convert); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
		if n := written.Load(); n > 110 {
			t.Errorf("%d bytes written after the end", n-100)
		}
		cancel(nil)
	}
}

func TestUnitsRefuse(t *testing.T) {
	gate, _ := Interleaved(4)
	for _, tc := range []struct {
		name string
		dims []int64
		n    int64
		rows RowMap
		to   gguf.Type
		size int
	}{
		{"short", []int64{4, 4}, 4, RowMap{}, gguf.F32, 63},
		{"short for the map", []int64{4, 4}, 4, gate, gguf.F32, 64},
		{"not whole blocks", []int64{4, 4}, 4, RowMap{}, gguf.Q8_0, 64},
		{"too few rows", []int64{4, 4}, 3, RowMap{}, gguf.F32, 64},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := Tensor{Name: "x", Dims: tc.dims, Parts: []Part{{N: tc.n, From: safetensors.Tensor{DType: safetensors.F32}, Rows: tc.rows}}}
			o, err := newTarget(x, "", tc.to)
			if err == nil {
				_, err = unitsOf([]*target{o}, bytesOf(make([]byte, tc.size)), 1)
			}
			if err == nil {
				t.Error("no error")
			}
		})
	}
}
