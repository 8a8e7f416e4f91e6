package checkpointtest

import (
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/inkling-go/inkling/internal/gguf"
)

// WriteGGUF writes a GGUF file with keys and F32 tensors, which are given as name,
// dims and values by turns.
func WriteGGUF(t testing.TB, w *gguf.Writer, keys map[string]any, tensors ...any) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for key, v := range keys {
		check(w.Set(key, v))
	}
	for i := 0; i < len(tensors); i += 3 {
		check(w.AddTensor(tensors[i].(string), gguf.F32, tensors[i+1].([]int64)))
	}
	for i := 0; i < len(tensors); i += 3 {
		check(w.WriteTensor(tensors[i].(string), func(dst io.Writer) error {
			var b []byte
			for _, x := range tensors[i+2].([]float32) {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
			_, err := dst.Write(b)
			return err
		}))
	}
	check(w.Commit())
}
