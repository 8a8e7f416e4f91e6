package convert

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzImatrix reads importance matrices in GGUF form: an error, or importance that is no less than nothing.
func FuzzImatrix(f *testing.F) {
	seed, err := os.ReadFile(imatrix(f, 32, func(col int) float32 { return float32(col) }))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)-4])
	path := filepath.Join(f.TempDir(), "x.gguf") // one for each process of the fuzzer
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := ReadImatrix(path)
		if err != nil {
			return
		}
		for name, rows := range m.byName {
			for _, row := range rows {
				for _, x := range row {
					if !(x >= 0) {
						t.Fatalf("%s: importance %v", name, x)
					}
				}
			}
		}
	})
}
