package safetensors

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// one opens a file with the tensor "t" that holds data.
func one(t *testing.T, dtype DType, shape string, data string) (*Checkpoint, Tensor) {
	t.Helper()
	b := append(file(object(entry("t", string(dtype), shape, 0, int64(len(data)))), 0), data...)
	c, err := OpenFile(filepath.Join(writeDir(t, map[string][]byte{"x.safetensors": b}), "x.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ti, _ := c.Tensor("t")
	return c, ti
}

func TestFloats(t *testing.T) {
	tests := []struct {
		dtype DType
		shape string
		data  string
		want  []float32
	}{
		{F32, "[2]", "\x00\x00\x80\x3f\x00\x00\x20\xc0", []float32{1, -2.5}},
		{F16, "[1,3]", "\x00\x3c\x00\xc1\x01\x00", []float32{1, -2.5, 0x1p-24}},
		{BF16, "[2]", "\x80\x3f\x20\xc0", []float32{1, -2.5}},
		{F64, "[]", "\x9a\x99\x99\x99\x99\x99\xb9\x3f", []float32{0.1}},
		{F32, "[0]", "", []float32{}},
	}
	for _, tt := range tests {
		t.Run(string(tt.dtype)+tt.shape, func(t *testing.T) {
			c, ti := one(t, tt.dtype, tt.shape, tt.data)
			got, err := c.Floats(ti)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestInts(t *testing.T) {
	tests := []struct {
		dtype DType
		data  string // two elements, the second with all bits set
		want  []int64
	}{
		{I64, "\x02\x00\x00\x00\x00\x00\x00\x00" + ones(8), []int64{2, -1}},
		{I32, "\x02\x01\x00\x00" + ones(4), []int64{258, -1}},
		{U32, "\x02\x01\x00\x00" + ones(4), []int64{258, 1<<32 - 1}},
		{I16, "\x02\x01" + ones(2), []int64{258, -1}},
		{U16, "\x02\x01" + ones(2), []int64{258, 1<<16 - 1}},
		{I8, "\x02" + ones(1), []int64{2, -1}},
		{U8, "\x02" + ones(1), []int64{2, 255}},
		{U64, "\x02\x00\x00\x00\x00\x00\x00\x00" + ones(7) + "\x7f", []int64{2, 1<<63 - 1}},
		{Bool, "\x00\x01", []int64{0, 1}},
	}
	for _, tt := range tests {
		t.Run(string(tt.dtype), func(t *testing.T) {
			c, ti := one(t, tt.dtype, "[2]", tt.data)
			got, err := c.Ints(ti)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func ones(n int) string { return strings.Repeat("\xff", n) }

func TestNumbersRefuse(t *testing.T) {
	for _, tt := range []struct {
		dtype DType
		n     int // bytes of one element
		ints  bool
	}{
		{I32, 4, false},
		{F8_E4M3, 1, false},
		{U8, 1, false},
		{F32, 4, true},
		{F8_E5M2, 1, true},
		{U64, 8, true}, // 2^64-1
	} {
		t.Run(fmt.Sprintf("%s as ints %t", tt.dtype, tt.ints), func(t *testing.T) {
			c, ti := one(t, tt.dtype, "[1]", ones(tt.n))
			var err error
			if tt.ints {
				_, err = c.Ints(ti)
			} else {
				_, err = c.Floats(ti)
			}
			var unsupported *UnsupportedError
			if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), `x.safetensors: tensor "t"`) {
				t.Errorf("error %v, want an UnsupportedError with file and tensor", err)
			}
		})
	}

	c, ti := one(t, F32, "[1]", "\x00\x00\x80\x3f")
	for name, change := range map[string]func(*Tensor){
		"shape": func(ti *Tensor) { ti.Shape = []int64{1 << 40} },
		"dtype": func(ti *Tensor) { ti.DType = F64 },
		"size":  func(ti *Tensor) { ti.Size = 2 },
		"shard": func(ti *Tensor) { ti.Shard = "other" },
	} {
		other := ti
		change(&other)
		if _, err := c.Floats(other); err == nil {
			t.Errorf("a tensor of another %s was read", name)
		}
	}
}
