package testutil

import (
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/internal/parity"
)

// Tol is the tolerance of a comparison: got is close to want when
// |got - want| <= Abs + Rel*|want|. The zero Tol asks for equal values.
type Tol struct {
	Rel, Abs float64
}

// Close compares got with want element by element and fails the test when one
// element is out of tolerance, with the worst element, the number of bad ones,
// and the largest and the mean error. A NaN on either side, and an infinity that
// only one side has, is out of any tolerance. It reports whether all is well, so
// that a caller can stop at the first of a row of intermediate results.
func Close(t testing.TB, name string, got, want []float32, tol Tol) bool {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", name, len(got), len(want))
		return false
	}
	d := compare(got, want, tol)
	RecordError(t, name, d.n, d.max, d.mean, tol)
	if d.bad > 0 {
		t.Errorf("%s: %v", name, d)
		return false
	}
	return true
}

// CloseMean fails the test when the mean of |got - want| is above most or not a
// number. It is for half-precision runs, whose single values may be far off. It
// reports whether all is well.
func CloseMean(t testing.TB, name string, got, want []float32, most float64) bool {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", name, len(got), len(want))
		return false
	}
	d := compare(got, want, Tol{})
	record(t, parity.Comparison{
		Name: name, Measure: parity.ErrorOf, Values: d.n, Max: parity.Number(d.max), Mean: parity.Number(d.mean),
		Tolerance: parity.Tolerance{Mean: most},
	})
	if !(d.mean <= most) {
		t.Errorf("%s: error mean %.2e, limit %.1e; max %.2e", name, d.mean, most, d.max)
		return false
	}
	return true
}

// diff is the outcome of comparing two slices of equal length.
type diff struct {
	n, bad    int
	tol       Tol
	worst     int // index of the element that exceeds its tolerance the most
	got, want float32
	max, mean float64 // of |got - want|
}

func (d diff) String() string {
	return fmt.Sprintf("%d of %d values out of tolerance (rel %.1e, abs %.1e); worst [%d]: got %v, want %v; error max %.2e, mean %.2e",
		d.bad, d.n, d.tol.Rel, d.tol.Abs, d.worst, d.got, d.want, d.max, d.mean)
}

func compare(got, want []float32, tol Tol) diff {
	d := diff{n: len(want), tol: tol}
	excess := math.Inf(-1) // error above its limit at d.worst
	var sum float64
	for i, w := range want {
		err, limit := absError(got[i], w), tol.Abs+tol.Rel*math.Abs(float64(w))
		over := err - limit
		if math.IsInf(err, 1) {
			over = err // even if limit is infinite as well
		}
		if over > 0 {
			d.bad++
		}
		if over > excess {
			excess, d.worst, d.got, d.want = over, i, got[i], w
		}
		d.max = max(d.max, err)
		sum += err
	}
	if d.n > 0 {
		d.mean = sum / float64(d.n)
	}
	return d
}

// absError is |got - want|, with 0 for equal infinities and +Inf where the
// difference is not a number.
func absError(got, want float32) float64 {
	if got == want {
		return 0
	}
	if e := math.Abs(float64(got) - float64(want)); !math.IsNaN(e) {
		return e
	}
	return math.Inf(1)
}
