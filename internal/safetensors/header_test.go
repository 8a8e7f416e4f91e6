package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file is a safetensors file of a header and n bytes of data, 0, 1, 2, …
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range n {
		b = append(b, byte(i))
	}
	return b
}

// entry is the header's field of one tensor.
func entry(name, dtype, shape string, begin, end int64) string {
	return fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, dtype, shape, begin, end)
}

func object(fields ...string) string { return "{" + strings.Join(fields, ",") + "}" }

func TestParseHeader(t *testing.T) {
	// Not in the order of the data, empty tensors between, spaces as padding.
	header := object(
		entry("late", "F32", "[2,1]", 16, 24),
		`"__metadata__":{"format":"pt","a":""}`,
		entry("scalar", "F64", "[]", 0, 8),
		entry("empty", "I32", "[3,0]", 8, 8),
		entry("half a byte each", "F4", "[4,4]", 8, 16),
		`"ключ \"\u00e9\"":{"data_offsets":[24,25],"shape":[1],"dtype":"BOOL"}`,
	) + "   "
	got, err := parseHeader("s", file(header, 25))
	if err != nil {
		t.Fatal(err)
	}
	data := int64(8 + len(header))
	want := []Tensor{
		{"scalar", F64, []int64{}, "s", data, 8},
		{"empty", I32, []int64{3, 0}, "s", data + 8, 0},
		{"half a byte each", F4, []int64{4, 4}, "s", data + 8, 8},
		{"late", F32, []int64{2, 1}, "s", data + 16, 8},
		{`ключ "é"`, Bool, []int64{1}, "s", data + 24, 1},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDTypes(t *testing.T) {
	// Bits by the names: the number in the name, except for the last four.
	bits := map[DType]int{
		"F64": 64, "F32": 32, "F16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4,
		"I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16, "U8": 8,
		"BF16": 16, "BOOL": 8, "f32": 0, "": 0,
	}
	for d, want := range bits {
		if got := d.Bits(); got != want {
			t.Errorf("%s: %d bits, want %d", d, got, want)
		}
		if want == 0 {
			continue
		}
		// Six elements of each type are a file, six and a byte more are not.
		size := 6 * want / 8
		header := object(entry("t", string(d), "[2,3]", 0, int64(size)))
		tensors, err := parseHeader("s", file(header, size))
		if err != nil || len(tensors) != 1 || tensors[0].Size != int64(size) || tensors[0].DType != d {
			t.Errorf("%s: %v, %v", d, tensors, err)
		}
		header = object(entry("t", string(d), "[2,3]", 0, int64(size)+1))
		if _, err := parseHeader("s", file(header, size+1)); err == nil {
			t.Errorf("%s: a tensor that is a byte too long was accepted", d)
		}
	}
}

func TestParseHeaderHostile(t *testing.T) {
	length := func(n uint64) []byte { return append(binary.LittleEndian.AppendUint64(nil, n), make([]byte, 64)...) }
	ok := entry("a", "U8", "[4]", 0, 4)
	tests := []struct {
		name        string
		b           []byte
		want        string
		unsupported bool
	}{
		{name: "empty file", b: nil, want: "0 bytes, want at least 8"},
		{name: "7 bytes", b: make([]byte, 7), want: "7 bytes, want at least 8"},
		{name: "git-lfs pointer", b: []byte("version https://git-lfs.github.com/spec/v1\noid"), want: "git-lfs"},
		{name: "header length 0", b: length(0), want: "does not start with {"},
		{name: "header length beyond the file", b: length(65), want: "header of 65 bytes, the file has 64 more"},
		{name: "header length above the cap", b: length(100_000_001), want: "want at most 100000000"},
		{name: "header length 2^60", b: length(1 << 60), want: "header of 1152921504606846976 bytes"},
		{name: "header length 2^64-1", b: length(math.MaxUint64), want: "header of 18446744073709551615 bytes"},

		{name: "space before the header", b: file(" "+object(ok), 4), want: "does not start with {"},
		{name: "not utf-8", b: file("{\"\xff\":1}", 0), want: "utf-8"},
		{name: "array", b: file("[]", 0), want: "does not start with {"},
		{name: "json ends early", b: file(`{"a":{"dtype":"U8"`, 0), want: "json ends early"},
		{name: "json with a comma too many", b: file(object(ok)[:len(object(ok))-1]+",}", 4), want: "offset 61: invalid character '}'"},
		{name: "text after the object", b: file(object(ok)+"x", 4), want: "after the json object"},
		{name: "second object", b: file(object(ok)+"{}", 4), want: "after the json object"},
		{name: "metadata is a string", b: file(object(`"__metadata__":"x"`, ok), 4), want: `__metadata__: found "x", want {`},
		{name: "metadata holds a number", b: file(object(`"__metadata__":{"n":1}`, ok), 4), want: "__metadata__.n: found 1, want a string"},
		{name: "metadata twice", b: file(object(`"__metadata__":{}`, `"__metadata__":{}`, ok), 4), want: "appears twice"},

		{name: "tensor is null", b: file(object(`"a":null`), 0), want: "tensor a: found null"},
		{name: "tensor is an array", b: file(object(`"a":[]`), 0), want: "tensor a: found [, want {"},
		{name: "tensor twice", b: file(object(ok, entry("a", "U8", "[4]", 4, 8)), 8), want: `key "a" appears twice`},
		{name: "tensor twice, once escaped", b: file(object(ok, `"\u0061":{}`), 4), want: `key "a" appears twice`},
		{name: "field twice", b: file(object(`"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}`), 4), want: `key "dtype" appears twice`},
		{name: "field in other case", b: file(object(`"a":{"DTYPE":"U8","shape":[4],"data_offsets":[0,4]}`), 4), want: `unknown field "DTYPE"`},
		{name: "field unknown", b: file(object(`"a":{"strides":[1]}`), 4), want: `unknown field "strides"`},
		{name: "without dtype", b: file(object(`"a":{"shape":[4],"data_offsets":[0,4]}`), 4), want: "want dtype, shape and two data_offsets"},
		{name: "without shape", b: file(object(`"a":{"dtype":"U8","data_offsets":[0,1]}`), 1), want: "want dtype, shape and two data_offsets"},
		{name: "without offsets", b: file(object(`"a":{"dtype":"U8","shape":[4]}`), 4), want: "want dtype, shape and two data_offsets"},
		{name: "one offset", b: file(object(`"a":{"dtype":"U8","shape":[4],"data_offsets":[0]}`), 4), want: "two data_offsets"},
		{name: "three offsets", b: file(object(`"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}`), 4), want: "more than 2 numbers"},
		{name: "dtype is a number", b: file(object(`"a":{"dtype":1}`), 4), want: "found 1, want a string"},
		{name: "dtype unknown", b: file(object(entry("a", "F6_E3M2", "[4]", 0, 3)), 3), want: `tensor a: dtype "F6_E3M2"`, unsupported: true},

		{name: "shape is a number", b: file(object(`"a":{"shape":4}`), 4), want: "shape: found 4, want ["},
		{name: "shape negative", b: file(object(entry("a", "U8", "[-4]", 0, 4)), 4), want: "found -4, want a whole number"},
		{name: "shape with a fraction", b: file(object(entry("a", "U8", "[4.0]", 0, 4)), 4), want: "found 4.0, want a whole number"},
		{name: "shape with an exponent", b: file(object(entry("a", "U8", "[4e0]", 0, 4)), 4), want: "found 4e0, want a whole number"},
		{name: "shape 2^63", b: file(object(entry("a", "U8", "[9223372036854775808]", 0, 4)), 4), want: "found 9223372036854775808"},
		{name: "shape of strings", b: file(object(entry("a", "U8", `["4"]`, 0, 4)), 4), want: `found "4", want a whole number`},
		{name: "shape nested", b: file(object(entry("a", "U8", `[[4]]`, 0, 4)), 4), want: "found [, want a whole number"},
		{name: "shape of 17 dimensions", b: file(object(entry("a", "U8", "["+strings.Repeat("1,", 16)+"1]", 0, 1)), 1), want: "more than 16 numbers"},
		{name: "shape overflows elements", b: file(object(entry("a", "U8", "[4294967296,4294967296]", 0, 0)), 0), want: "overflows"},
		{name: "shape overflows bits", b: file(object(entry("a", "F64", "[4611686018427387904]", 0, 0)), 0), want: "overflows"},
		{name: "shape of half bytes", b: file(object(entry("a", "F4", "[3]", 0, 2)), 2), want: "does not fill whole bytes"},

		{name: "offsets negative", b: file(object(entry("a", "U8", "[4]", -4, 0)), 4), want: "found -4"},
		{name: "offsets reversed", b: file(object(entry("a", "U8", "[4]", 4, 0)), 4), want: "data_offsets [4, 0]"},
		{name: "offsets of another size", b: file(object(entry("a", "U8", "[5]", 0, 4)), 4), want: "want 5 bytes for U8 [5]"},
		{name: "data beyond the file", b: file(object(entry("a", "U8", "[5]", 0, 5)), 4), want: `tensor "a" has 5 bytes, the file has 4 more`},
		{name: "data far beyond the file", b: file(object(entry("a", "U8", "[576460752303423488]", 0, 1<<59)), 4), want: "the file has 4 more"},
		{name: "hole at the start", b: file(object(entry("a", "U8", "[4]", 1, 5)), 5), want: `hole of 1 bytes before tensor "a"`},
		{name: "hole between", b: file(object(ok, entry("b", "U8", "[4]", 5, 9)), 9), want: `hole of 1 bytes before tensor "b"`},
		{name: "hole after", b: file(object(ok), 5), want: "1 bytes after the last tensor"},
		{name: "overlap", b: file(object(ok, entry("b", "U8", "[4]", 3, 7)), 7), want: `tensor "b" overlaps`},
		{name: "same data", b: file(object(ok, entry("b", "U8", "[4]", 0, 4)), 4), want: `tensor "b" overlaps`},
		{name: "empty tensor inside another", b: file(object(ok, entry("b", "U8", "[0]", 2, 2)), 4), want: `tensor "b" overlaps`},
		{name: "data without tensors", b: file("{}", 4), want: "4 bytes after the last tensor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseHeader("s", tt.b)
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q", err, tt.want)
			}
			var format *FormatError
			var unsupported *UnsupportedError
			if errors.As(err, &unsupported) != tt.unsupported || errors.As(err, &format) == tt.unsupported {
				t.Errorf("error %q: unsupported is %t, want %t", err, !tt.unsupported, tt.unsupported)
			}
			if format != nil && (format.Off < 0 || format.Off > int64(len(tt.b))) {
				t.Errorf("error %q: offset is outside of the file", err)
			}
		})
	}
}

// TestTruncated cuts a file at each byte: no part of it is a file.
func TestTruncated(t *testing.T) {
	whole := file(object(entry("a", "U8", "[4]", 0, 4), entry("b", "BF16", "[2]", 4, 8)), 8)
	if _, err := parseHeader("s", whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		_, err := parseHeader("s", whole[:n])
		var format *FormatError
		if !errors.As(err, &format) {
			t.Fatalf("cut to %d of %d bytes: error %v, want a FormatError", n, len(whole), err)
		}
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a file cut by one byte: error %v, want one that names %s", err, path)
	}
}

// TestDeepJSON checks that nesting does not cost more than its text.
func TestDeepJSON(t *testing.T) {
	const depth = 1 << 20
	deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := parseHeader("s", file(`{"a":`+deep+`}`, 0)); err == nil {
		t.Error("a header of arrays was accepted")
	}
	if _, err := parseIndex([]byte(`{"metadata":` + deep + `,"weight_map":{"a":"b"}}`)); err != nil {
		t.Errorf("an index with a deep field that is not read: %v", err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64*depth {
		t.Errorf("%d bytes allocated for %d of text", got, 2*depth)
	}
}

func FuzzHeader(f *testing.F) {
	real, err := os.ReadFile("../../testdata/inkling-tiny/mtp.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(real)
	f.Add(real[:8+n]) // without its data, so an error, but of the last step
	f.Add(file(object(entry("a", "F4", "[2,2]", 0, 2), entry("b", "F8_E4M3", "[]", 2, 3), `"__metadata__":{"x":"y"}`)+" ", 3))
	f.Add(file(object(entry("a", "U8", "[0]", 0, 0), entry("b", "I64", "[1]", 0, 8)), 8))
	f.Add(file("{}", 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, err := parseHeader("s", b)
		if err != nil {
			var format *FormatError
			var unsupported *UnsupportedError
			if !errors.As(err, &format) && !errors.As(err, &unsupported) {
				t.Fatalf("error %v is of neither type", err)
			}
			return
		}
		next := 8 + int64(binary.LittleEndian.Uint64(b))
		for _, ti := range tensors {
			if ti.Offset != next || ti.Size*8 != ti.Elems()*int64(ti.DType.Bits()) {
				t.Errorf("tensor %+v, want offset %d", ti, next)
			}
			next += ti.Size
		}
		if next != int64(len(b)) {
			t.Errorf("tensors end at %d of %d", next, len(b))
		}
	})
}
