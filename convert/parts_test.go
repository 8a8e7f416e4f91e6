package convert

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// TestParts makes outputs of several pieces of two checkpoint tensors, a and b,
// whose elements count up from 0 and from 100.
func TestParts(t *testing.T) {
	count := func(from, n int) (b []byte) {
		for i := range n {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(from+i)))
		}
		return b
	}
	a := safetensors.Tensor{Name: "a", DType: safetensors.F32}
	b := safetensors.Tensor{Name: "b", DType: safetensors.F32}
	data := map[string][]byte{"a": count(0, 12), "b": count(100, 12)}
	for _, tc := range []struct {
		name string
		x    Tensor
		want []float32
	}{
		{"stacked", Tensor{Dims: []int64{2, 3, 2}, Parts: []Part{
			{N: 3, From: a, Rows: Slice(1, 3)}, {N: 3, From: b, Rows: Slice(0, 3)},
		}}, []float32{2, 3, 4, 5, 6, 7, 100, 101, 102, 103, 104, 105}},
		{"columns", Tensor{Dims: []int64{2, 3, 2}, Parts: []Part{ // a and b are 4 rows of 3
			{N: 3, From: a, Rows: Slice(1, 2), Transposed: true}, {N: 3, From: b, Rows: Slice(2, 2), Transposed: true},
		}}, []float32{3, 6, 4, 7, 5, 8, 106, 109, 107, 110, 108, 111}},
		{"rows that step over slabs", Tensor{Dims: []int64{1, 6}, Parts: []Part{
			{N: 6, From: a, Rows: RowMap{Slab: 1, Count: 2, First: 2, Step: 5}},
		}}, []float32{2, 7, 3, 8, 4, 9}},
		{"elements of a vector", Tensor{Dims: []int64{6}, Parts: []Part{
			{N: 4, From: a, Rows: RowMap{Slab: 4, Count: 2, First: 1, Step: 1}}, {N: 2, From: b},
		}}, []float32{1, 2, 5, 6, 100, 101}},
	} {
		for _, size := range []int64{1, 16, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d bytes", tc.name, size), func(t *testing.T) {
				out, _ := encode(t, tc.x, func(x safetensors.Tensor) *io.SectionReader { return sectionOf(data[x.Name]) }, gguf.F32, size, 2)
				got := make([]float32, len(out)/4)
				if err := gguf.DecodeRows(gguf.F32, got, out); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestPartsBounds asks for one row more than the checkpoint tensor has.
func TestPartsBounds(t *testing.T) {
	for _, tc := range []struct {
		name string
		rows RowMap
		bad  bool
		tr   bool
	}{
		{"last rows", Slice(2, 4), false, false},
		{"past the end", Slice(3, 4), true, false},
		{"last columns", Slice(4, 2), false, true}, // of six rows of four
		{"columns past the end", Slice(5, 2), true, true},
		{"slab that ends before its middle", RowMap{Slab: 1, Count: 3, First: 0, Step: 2}, false, false},
		{"middle past the end", RowMap{Slab: 1, Count: 3, First: 2, Step: 2}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := Tensor{Dims: []int64{2, 4}, Parts: []Part{{
				N: 4, From: safetensors.Tensor{DType: safetensors.F32}, Rows: tc.rows, Transposed: tc.tr,
			}}}
			size := 6 * 2 * 4
			if tc.tr {
				size = 6 * 4 * 4
			}
			o, err := newTarget(x, "", gguf.F32)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := unitsOf([]*target{o}, bytesOf(make([]byte, size)), 1); (err != nil) != tc.bad {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestPartsCounts names the checkpoint tensor that has the first bad weight.
func TestPartsCounts(t *testing.T) {
	x := Tensor{Dims: []int64{1, 4}, Parts: []Part{
		{N: 2, From: safetensors.Tensor{Name: "good", DType: safetensors.BF16}},
		{N: 2, From: safetensors.Tensor{Name: "bad", DType: safetensors.BF16}},
	}}
	data := map[string][]byte{"good": {0x80, 0x3f, 0x80, 0x3f}, "bad": {0x80, 0x3f, 0xc0, 0x7f}} // 1 1, 1 NaN
	_, got := encode(t, x, func(x safetensors.Tensor) *io.SectionReader { return sectionOf(data[x.Name]) }, gguf.F16, 1, 1)
	if want := (counts{nonFinite: 1, first: "bad"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestUnits checks that each checkpoint tensor is one unit, in the order of the files,
// whatever the order and number of the outputs that are made of it.
func TestUnits(t *testing.T) {
	gate, up := Interleaved(2)
	at := func(name, shard string, offset int64) safetensors.Tensor {
		return safetensors.Tensor{Name: name, DType: safetensors.F32, Shard: shard, Offset: offset}
	}
	w13, w2, other := at("w13", "a", 64), at("w2", "a", 0), at("other", "b", 0)
	var targets []*target
	for _, x := range []Tensor{
		{Name: "other", Dims: []int64{2, 4}, Parts: []Part{{N: 4, From: other}}},
		{Name: "gate", Dims: []int64{2, 2}, Parts: []Part{{N: 2, From: w13, Rows: gate}}},
		{Name: "up", Dims: []int64{2, 2}, Parts: []Part{{N: 2, From: w13, Rows: up}}},
		{Name: "down", Dims: []int64{2, 4}, Parts: []Part{{N: 4, From: w2}}},
	} {
		o, err := newTarget(x, "", gguf.F32)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, o)
	}
	list, err := unitsOf(targets, bytesOf(make([]byte, 32)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range list {
		got = append(got, fmt.Sprint(u.from.Name, " ", len(u.uses)))
	}
	if diff := cmp.Diff([]string{"w2 1", "w13 2", "other 1"}, got); diff != "" {
		t.Errorf("units and uses (-want +got):\n%s", diff)
	}
}
