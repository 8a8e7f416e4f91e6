package testutil

import (
	"math"
	"testing"
)

// NMSE compares got with want by the normalised mean squared error,
// sum((got-want)^2) / sum(want^2), and fails the test when it is above limit or
// not a number. It is the measure of ggml's test-backend-ops: for results whose
// single elements may be off because weights were rounded. It reports whether
// all is well.
func NMSE(t testing.TB, name string, got, want []float32, limit float64) bool {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", name, len(got), len(want))
		return false
	}
	e := nmse(got, want)
	RecordValue(t, name, "NMSE", len(want), e, limit)
	if !(e <= limit) { // also true for NaN
		d := compare(got, want, Tol{})
		t.Errorf("%s: NMSE %.3e, limit %.1e; worst [%d]: got %v, want %v; error max %.2e, mean %.2e",
			name, e, limit, d.worst, d.got, d.want, d.max, d.mean)
		return false
	}
	return true
}

func nmse(got, want []float32) float64 {
	var diff, norm float64
	for i, w := range want {
		e := float64(got[i]) - float64(w)
		diff += e * e
		norm += float64(w) * float64(w)
	}
	switch {
	case diff == 0:
		return 0 // also where want is all zero, or empty
	case norm == 0:
		return math.Inf(1)
	default:
		return diff / norm
	}
}
