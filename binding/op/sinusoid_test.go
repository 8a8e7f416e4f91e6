package op

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSinusoid(t *testing.T) {
	// Row 0 is zeros, then ones; an odd width is filled up with a zero.
	if diff := cmp.Diff([]float32{0, 0, 1, 1, 0}, Sinusoid(1, 5)); diff != "" {
		t.Error(diff)
	}
	// Width 4: frequencies 1 and 1/100.
	got := Sinusoid(4, 4)
	for f := range 4 {
		x := float64(f)
		want := []float64{math.Sin(x), math.Sin(x / 100), math.Cos(x), math.Cos(x / 100)}
		closeTo(t, "row", got[4*f:4*f+4], want, 1e-7)
	}
	// Far rows, of a long clip.
	far := Sinusoid(768, 1152)[767*1152:]
	closeTo(t, "row 767", []float32{far[1], far[577]}, []float64{math.Sin(767 * math.Pow(10000, -1.0/576)), math.Cos(767 * math.Pow(10000, -1.0/576))}, 1e-7)
}
