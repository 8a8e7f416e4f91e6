package binding

import (
	"math"
	"sync"
	"testing"
)

// TestQuantise rounds weights to every type and back. The relative error of normal
// weights falls by about half with each bit.
func TestQuantise(t *testing.T) {
	const rows, cols = 16, 512
	src, ones := make([]float32, rows*cols), make([]float32, cols)
	for i := range src {
		src[i] = float32(math.Sin(float64(i)*1.7) * math.Cos(float64(i*i%977)))
	}
	for i := range ones {
		ones[i] = 1
	}
	tested := 0
	for dt := range DType(64) {
		if !dt.Quantisable() {
			continue
		}
		tested++
		bits := 8 * float64(dt.Size()) / float64(dt.BlockSize())
		dst, got := make([]byte, rows*cols/dt.BlockSize()*dt.Size()), make([]float32, rows*cols)
		var wg sync.WaitGroup
		for range 4 { // its tables are shared
			wg.Go(func() {
				if err := Quantise(dt, make([]byte, len(dst)), src, cols, ones); err != nil {
					t.Errorf("%s: %v", dt, err)
				}
			})
		}
		wg.Wait()
		if err := Quantise(dt, dst, src, cols, ones); err != nil {
			t.Errorf("%s: %v", dt, err)
			continue
		}
		if err := Dequantise(dt, got, dst); err != nil {
			t.Errorf("%s: %v", dt, err)
			continue
		}
		var errs, squares float64
		for i, v := range src {
			errs += math.Pow(float64(v-got[i]), 2)
			squares += float64(v) * float64(v)
		}
		if rel, limit := math.Sqrt(errs/squares), 2*math.Pow(2, -bits+1); rel > limit || rel == 0 {
			t.Errorf("%s, %.2f bits: relative error %.4f, want at most %.4f", dt, bits, rel, limit)
		}
	}
	if tested < 20 {
		t.Errorf("%d types", tested)
	}
}

// TestQuantiseRefuses has what ggml would abort on.
func TestQuantiseRefuses(t *testing.T) {
	const iq2xxs, q4k = DType(16), DType(12)
	row := make([]float32, 256)
	with := func(v float32) []float32 {
		x := make([]float32, 256)
		x[7] = v
		return x
	}
	for _, tc := range []struct {
		name    string
		t       DType
		dst     int
		src     []float32
		cols    int64
		imatrix []float32
	}{
		{"no type of blocks", F32, 1024, row, 256, nil},
		{"unknown type", 99, 144, row, 256, nil},
		{"removed type", 4, 144, row, 256, nil},
		{"columns not of whole blocks", q4k, 144, row, 128, nil},
		{"no columns", q4k, 144, row, 0, nil},
		{"part of a row", q4k, 144, row[:200], 256, nil},
		{"destination too short", q4k, 143, row, 256, nil},
		{"importance of other columns", q4k, 144, row, 256, row[:255]},
		{"importance is negative", q4k, 144, row, 256, with(-1)},
		{"importance is NaN", q4k, 144, row, 256, with(float32(math.NaN()))},
		{"importance is needed", iq2xxs, 66, row, 256, nil},
		{"NaN", q4k, 144, with(float32(math.NaN())), 256, nil},
		{"infinite", q4k, 144, with(float32(math.Inf(-1))), 256, nil},
		{"too large", q4k, 144, with(65505), 256, nil},
	} {
		if err := Quantise(tc.t, make([]byte, tc.dst), tc.src, tc.cols, tc.imatrix); err == nil {
			t.Errorf("%s: no error", tc.name)
		}
	}
	if !iq2xxs.NeedsImatrix() || q4k.NeedsImatrix() || F32.NeedsImatrix() {
		t.Error("NeedsImatrix: want iq2_xxs alone")
	}
	if err := Dequantise(q4k, row, make([]byte, 143)); err == nil {
		t.Error("Dequantise of part of a block: no error")
	}
	if _, _, err := OpenableGGUF("quantise_test.go"); err == nil {
		t.Error("ggml opens Go source")
	}
}
