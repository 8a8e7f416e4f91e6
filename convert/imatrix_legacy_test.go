package convert

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/gguf"
)

// legacyEntry is one tensor of an imatrix in the form before GGUF.
type legacyEntry struct {
	name   string
	calls  int32
	values []float32 // as they are in the file
}

// legacy returns the bytes of such a file, without the part that newer files end with.
func legacy(entries ...legacyEntry) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(len(entries)))
	for _, e := range entries {
		b = append(le.AppendUint32(b, uint32(len(e.name))), e.name...)
		b = le.AppendUint32(b, uint32(e.calls))
		b = le.AppendUint32(b, uint32(len(e.values)))
		for _, v := range e.values {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// legacyEnd is what newer files end with: the chunks and the text's name.
func legacyEnd(chunks uint32, text string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, chunks)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLegacyImatrix reads a file made by hand: a matrix, and a stack of three experts
// the second of which was never chosen.
func TestLegacyImatrix(t *testing.T) {
	data := legacy(
		legacyEntry{"blk.0.attn_q.weight", 4, []float32{4, 8, 0, 2}},
		legacyEntry{"blk.0.ffn_up_exps.weight", 0, []float32{1, 2, 0, 0, 3, 0}},
	)
	for _, tc := range []struct {
		name   string
		data   []byte
		chunks uint64
	}{
		{"without end", data, 0},
		{"with end", append(data[:len(data):len(data)], legacyEnd(100, "calibration.txt")...), 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := ReadImatrix(write(t, "imatrix.dat", tc.data))
			if err != nil {
				t.Fatal(err)
			}
			if m.chunks != tc.chunks || m.file != "imatrix.dat" {
				t.Errorf("%d chunks of %q, want %d of imatrix.dat", m.chunks, m.file, tc.chunks)
			}
			for _, x := range []struct {
				tensor Tensor
				want   [][]float32
			}{
				{Tensor{Name: "blk.0.attn_q.weight", Dims: []int64{4, 9}}, [][]float32{{1, 2, 0, 0.5}}},
				{Tensor{Name: "blk.0.ffn_up_exps.weight", Dims: []int64{2, 5, 3}}, [][]float32{{1, 2}, {1, 1}, {3, 0}}},
			} {
				got, err := m.of(x.tensor, gguf.Q4_K)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(x.want, got); d != "" {
					t.Errorf("%s (-want +got):\n%s", x.tensor.Name, d)
				}
			}
			_, err = m.of(Tensor{Name: "blk.0.ffn_up_exps.weight", Dims: []int64{2, 5, 4}}, gguf.Q4_K)
			if want := "imatrix.dat: importance of tensor blk.0.ffn_up_exps.weight is for 1 matrices of 6 columns, want 4 of 2"; err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
}

// TestLegacyImatrixRefuses has files that are broken; no size in them is believed.
func TestLegacyImatrixRefuses(t *testing.T) {
	one := legacy(legacyEntry{"a.weight", 1, []float32{1, 2}})
	set := func(off int, v uint32) []byte {
		b := append([]byte(nil), one...)
		binary.LittleEndian.PutUint32(b[off:], v)
		return b
	}
	const prefix = "no GGUF file, and as an imatrix of the older form: "
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "offset 0: " + prefix + "number of entries of 4 bytes, the file has 0 more"},
		{"text", []byte("# types\noutput = q9\n"), "offset 0: " + prefix + "number of entries is 2037653539, want 1 to 1"},
		{"no entry", set(0, 0), "number of entries is 0, want 1 to 1"},
		{"many entries", set(0, 1<<31-1), "number of entries is 2147483647, want 1 to 1"},
		{"long name", set(4, 1<<30), "offset 4: " + prefix + "length of a tensor's name is 1073741824, want 1 to 1024"},
		{"negative calls", set(16, 1<<31), "number of calls is -2147483648, want 0 to 2147483647"},
		{"many values", set(20, 1<<31-1), "offset 24: " + prefix + "values of 8589934588 bytes, the file has 8 more"},
		{"no values", set(20, 0), "number of values is 0, want 1 to 2147483647"},
		{"cut", one[:len(one)-1], "values of 8 bytes, the file has 7 more"},
		{"NaN", set(24, math.Float32bits(float32(math.NaN()))), "offset 24: " + prefix + "tensor a.weight: importance of column 0 is NaN"},
		{"negative", set(28, math.Float32bits(-1)), "offset 28: " + prefix + "tensor a.weight: importance of column 1 is -1"},
		{"twice", legacy(legacyEntry{"a", 1, []float32{1}}, legacyEntry{"a", 1, []float32{1}}), "tensor a has two entries"},
		{"end cut", append(one[:len(one):len(one)], 1, 0, 0, 0), "length of the text's name of 4 bytes, the file has 0 more"},
		{"more", append(one[:len(one):len(one)], append(legacyEnd(1, "x"), 0)...), "1 bytes after the end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ReadImatrix(write(t, "imatrix.dat", tc.data))
			if err == nil || !strings.HasSuffix(err.Error(), tc.want) {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
		})
	}
}

// FuzzLegacyImatrix looks for input that panics.
func FuzzLegacyImatrix(f *testing.F) {
	one := legacy(legacyEntry{"a.weight", 3, []float32{1, 2}})
	f.Add(one)
	f.Add(append(one, legacyEnd(7, "text")...))
	f.Add([]byte("GGUF"))
	path := filepath.Join(f.TempDir(), "imatrix.dat")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := ReadImatrix(path)
		if err == nil && len(m.byName) == 0 {
			t.Error("an imatrix without entries")
		}
	})
}
