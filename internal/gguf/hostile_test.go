package gguf

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// raw builds GGUF bytes field by field, right or wrong.
type raw struct{ b []byte }

func (r *raw) u8(v uint8) *raw   { r.b = append(r.b, v); return r }
func (r *raw) u32(v uint32) *raw { r.b = binary.LittleEndian.AppendUint32(r.b, v); return r }
func (r *raw) u64(v uint64) *raw { r.b = binary.LittleEndian.AppendUint64(r.b, v); return r }
func (r *raw) text(s string) *raw {
	r.b = append(r.b, s...)
	return r
}
func (r *raw) str(s string) *raw { return r.u64(uint64(len(s))).text(s) }
func (r *raw) pad(n int) *raw    { r.b = append(r.b, make([]byte, n)...); return r }

// align pads with zeros to a multiple of n.
func (r *raw) align(n int) *raw { return r.pad((n - len(r.b)%n) % n) }

// file starts a file of version 3.
func file(nTensors, nPairs uint64) *raw {
	return new(raw).text("GGUF").u32(3).u64(nTensors).u64(nPairs)
}

// tensor adds a tensor record.
func (r *raw) tensor(name string, typ uint32, off uint64, dims ...uint64) *raw {
	r.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(typ).u64(off)
}

// openBytes writes b to a file and opens it.
func openBytes(t testing.TB, b []byte) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.gguf")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(path)
}

// filler is how many bytes follow a header that is wrong, so that it is not refused
// for being cut short.
const filler = 4096

func TestOpenHostile(t *testing.T) {
	const huge = 1 << 60
	alignment := func(v uint32) *raw { return file(0, 1).str("general.alignment").u32(4).u32(v) }
	arrayOf := func(typ uint32, n uint64) *raw { return file(0, 1).str("a").u32(9).u32(typ).u64(n).pad(filler) }
	tests := []struct {
		name        string
		b           *raw
		want        string
		unsupported bool
	}{
		{name: "empty file", b: new(raw), want: "magic needs 4 bytes"},
		{name: "magic", b: new(raw).text("GGML").pad(filler), want: `magic is "GGML"`},
		{name: "git-lfs pointer", b: new(raw).text("version https://git-lfs.github.com/spec/v1\n"), want: "git-lfs"},
		{name: "version 0", b: new(raw).text("GGUF").u32(0).pad(filler), want: "version 0", unsupported: true},
		{name: "version 1", b: new(raw).text("GGUF").u32(1).pad(filler), want: "version 1, want 2 or 3", unsupported: true},
		{name: "version 4", b: new(raw).text("GGUF").u32(4).pad(filler), want: "version 4", unsupported: true},
		{name: "big-endian", b: new(raw).text("GGUF").text("\x00\x00\x00\x03").pad(filler), want: "big-endian", unsupported: true},

		{name: "tensor count", b: file(huge, 0).pad(filler), want: "number of tensors is 1152921504606846976"},
		{name: "tensor count negative", b: file(math.MaxUint64, 0).pad(filler), want: "number of tensors"},
		{name: "tensor count one too many", b: file(2, 0).tensor("a", 0, 0, 8).align(32).pad(32), want: "tensor"},
		{name: "key count", b: file(0, huge).pad(filler), want: "number of keys is 1152921504606846976"},
		{name: "key count negative", b: file(0, math.MaxUint64).pad(filler), want: "number of keys"},

		{name: "key length", b: file(0, 1).u64(huge).pad(filler), want: "key of 1152921504606846976 bytes, want at most 65535"},
		{name: "key length beyond the file", b: file(0, 1).u64(60000).pad(filler), want: "key needs 60000 bytes"},
		{name: "key empty", b: file(0, 1).str("").u32(4).u32(1), want: "empty key"},
		{name: "key twice", b: file(0, 2).str("a").u32(4).u32(1).str("a").u32(4).u32(2), want: `key "a" appears twice`},
		{name: "value type", b: file(0, 1).str("a").u32(13).pad(filler), want: "value type 13"},
		{name: "bool", b: file(0, 1).str("a").u32(7).u8(2).pad(filler), want: "bool is 2"},
		{name: "string length", b: file(0, 1).str("a").u32(8).u64(huge).pad(filler), want: "needs 1152921504606846976 bytes"},
		{name: "string length negative", b: file(0, 1).str("a").u32(8).u64(math.MaxUint64).pad(filler), want: "needs 18446744073709551615 bytes"},

		{name: "array of uint8, length", b: arrayOf(0, huge), want: "array of a is 1152921504606846976"},
		{name: "array of uint64, length overflows", b: arrayOf(10, math.MaxUint64/8+2), want: "array of a"},
		{name: "array of string, length", b: arrayOf(8, huge), want: "array of a"},
		{name: "array of string, element length", b: file(0, 1).str("a").u32(9).u32(8).u64(1).u64(huge).pad(filler), want: "array of a needs"},
		{name: "array of bool, element", b: file(0, 1).str("a").u32(9).u32(7).u64(2).u8(1).u8(9).pad(filler), want: "bool is 9"},
		{name: "array of value type 13", b: arrayOf(13, 1), want: "array of value type 13"},
		{name: "array of arrays", b: arrayOf(9, 1), want: "array of arrays", unsupported: true},

		{name: "alignment 0", b: alignment(0), want: `"general.alignment" is 0`},
		{name: "alignment 4", b: alignment(4), want: `"general.alignment" is 4`},
		{name: "alignment 24", b: alignment(24), want: `"general.alignment" is 24`},
		{name: "alignment 2^32-1", b: alignment(math.MaxUint32), want: `"general.alignment"`},
		{name: "alignment of another type", b: file(0, 1).str("general.alignment").u32(10).u64(32), want: "is uint64, want uint32"},

		{name: "tensor name empty", b: file(1, 0).tensor("", 0, 0, 8).pad(filler), want: "empty tensor name"},
		{name: "tensor name of 64 bytes", b: file(1, 0).tensor(strings.Repeat("n", 64), 0, 0, 8).pad(filler), want: "tensor name of 64 bytes"},
		{name: "tensor name with zero byte", b: file(1, 0).tensor("a\x00b", 0, 0, 8).pad(filler), want: "zero byte"},
		{name: "tensor name length", b: file(1, 0).u64(huge).pad(filler), want: "tensor name needs"},
		{name: "tensor twice", b: file(2, 0).tensor("a", 0, 0, 8).tensor("a", 0, 32, 8).pad(filler), want: `tensor "a" appears twice`},
		{name: "5 dimensions", b: file(1, 0).tensor("a", 0, 0, 1, 1, 1, 1, 1).pad(filler), want: "5 dimensions"},
		{name: "2^32-1 dimensions", b: file(1, 0).str("a").u32(math.MaxUint32).pad(filler), want: "4294967295 dimensions"},
		{name: "dimension 0", b: file(1, 0).tensor("a", 0, 0, 8, 0).pad(filler), want: "dimension 1 is 0"},
		{name: "dimension negative", b: file(1, 0).tensor("a", 0, 0, math.MaxUint64).pad(filler), want: "dimension 0 is -1"},
		{name: "shape overflows elements", b: file(1, 0).tensor("a", 0, 0, 1<<32, 1<<31).pad(filler), want: "overflows"},
		{name: "shape overflows to 0", b: file(1, 0).tensor("a", 0, 0, 1<<32, 1<<32).pad(filler), want: "overflows"},
		{name: "shape overflows bytes", b: file(1, 0).tensor("a", 28, 0, 1<<30, 1<<31).pad(filler), want: "overflows"},
		{name: "row overflows bytes", b: file(1, 0).tensor("a", 28, 0, 1<<62).pad(filler), want: "too large"},
		{name: "row is no multiple of the block", b: file(1, 0).tensor("a", 8, 0, 33).pad(filler), want: "33 elements is not a multiple of q8_0's block of 32"},
		{name: "scalar of a block type", b: file(1, 0).tensor("a", 8, 0).pad(filler), want: "block"},
		{name: "tensor type removed from ggml", b: file(1, 0).tensor("a", 4, 0, 32).pad(filler), want: "tensor type 4", unsupported: true},
		{name: "tensor type 2^32-1", b: file(1, 0).tensor("a", math.MaxUint32, 0, 32).pad(filler), want: "tensor type 4294967295", unsupported: true},
		{name: "data beyond the file", b: file(1, 0).tensor("a", 0, 0, 1<<40).pad(filler), want: "4398046511104 bytes at 64"},
		{name: "offset of the first is not 0", b: file(1, 0).tensor("a", 0, 32, 8).pad(filler), want: "offset 32, want 0"},
		{name: "offset overlaps", b: file(2, 0).tensor("a", 0, 0, 16).tensor("b", 0, 32, 8).pad(filler), want: `tensor "b" has offset 32, want 64`},
		{name: "offset leaves a hole", b: file(2, 0).tensor("a", 0, 0, 8).tensor("b", 0, 64, 8).pad(filler), want: `tensor "b" has offset 64, want 32`},
		{name: "offset not aligned", b: file(2, 0).tensor("a", 0, 0, 7).tensor("b", 0, 28, 8).pad(filler), want: "offset 28, want 32"},
		{name: "offset negative", b: file(1, 0).tensor("a", 0, math.MaxUint64, 8).pad(filler), want: "offset 18446744073709551615"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := openBytes(t, tt.b.b)
			if err == nil {
				f.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "x.gguf") {
				t.Errorf("error %q, want it to name x.gguf and hold %q", err, tt.want)
			}
			var format *FormatError
			var unsupported *UnsupportedError
			if errors.As(err, &unsupported) != tt.unsupported || errors.As(err, &format) == tt.unsupported {
				t.Errorf("error %q: unsupported is %t, want %t", err, !tt.unsupported, tt.unsupported)
			}
			if format != nil && (format.Off < 0 || format.Off > int64(len(tt.b.b))) {
				t.Errorf("error %q: offset is outside of the file", err)
			}
		})
	}
}

// TestOpenAccepts has the neighbours of the cases above that are in order.
func TestOpenAccepts(t *testing.T) {
	tests := []struct {
		name string
		b    *raw
	}{
		{"nothing in it", file(0, 0)},
		{"version 2", new(raw).text("GGUF").u32(2).u64(0).u64(1).str("a").u32(4).u32(1)},
		{"alignment 8", file(2, 1).str("general.alignment").u32(4).u32(8).tensor("a", 24, 0, 3).tensor("b", 24, 8, 3).align(8).pad(11)},
		{"alignment 2^31 without data", file(0, 1).str("general.alignment").u32(4).u32(1 << 31)},
		{"tensor name of 63 bytes", file(1, 0).tensor(strings.Repeat("n", 63), 0, 0, 8).align(32).pad(32)},
		{"scalar", file(1, 0).tensor("a", 0, 0).align(32).pad(4)},
		{"4 dimensions", file(1, 0).tensor("a", 24, 0, 2, 3, 4, 5).align(32).pad(120)},
		{"empty arrays", file(0, 2).str("a").u32(9).u32(8).u64(0).str("b").u32(9).u32(5).u64(0)},
		{"bytes after the data", file(1, 0).tensor("a", 0, 0, 8).align(32).pad(filler)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := openBytes(t, tt.b.b)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, ti := range f.Tensors() {
				if got := int64(len(f.Bytes(ti))); got != ti.Size {
					t.Errorf("tensor %q: %d bytes, want %d", ti.Name, got, ti.Size)
				}
			}
		})
	}
}

// TestOpenTruncated cuts a file at each byte up to the end of the last tensor.
func TestOpenTruncated(t *testing.T) {
	whole, err := os.ReadFile("testdata/ggml.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if f, err := openBytes(t, whole); err != nil {
		t.Fatal(err)
	} else {
		f.Close()
	}
	// The last tensor's size is a multiple of the alignment: no padding follows it.
	for n := range whole {
		_, err := parseHeader(whole[:n])
		var format *FormatError
		if !errors.As(err, &format) {
			t.Fatalf("cut to %d of %d bytes: error %v, want a FormatError", n, len(whole), err)
		}
		if format.Off > int64(n) {
			t.Errorf("cut to %d bytes: error %v has an offset beyond it", n, err)
		}
	}
	if _, err := openBytes(t, whole[:len(whole)-1]); err == nil {
		t.Error("a file cut by one byte opened")
	}
}

// TestOpenMemory checks that a small file does not take much memory, whatever its
// counts and lengths say.
func TestOpenMemory(t *testing.T) {
	for name, b := range map[string]*raw{
		"tensors": file(filler/minTensor, 0).pad(filler),
		"keys":    file(0, filler/minPair).pad(filler),
		"array":   file(0, 1).str("a").u32(9).u32(0).u64(1 << 40).pad(filler),
		"strings": file(0, 1).str("a").u32(9).u32(8).u64(1 << 40).pad(filler),
		"string":  file(0, 1).str("a").u32(8).u64(1 << 40).pad(filler),
		"shape":   file(1, 0).tensor("a", 0, 0, 1<<40).pad(filler),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := parseHeader(b.b); err == nil {
				t.Error("accepted")
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
				t.Errorf("%d bytes allocated for a file of %d", got, len(b.b))
			}
		})
	}
}
