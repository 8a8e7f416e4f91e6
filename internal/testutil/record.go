package testutil

import (
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/inkling-go/inkling/internal/parity"
)

// devices has, for the name of a test, the device that it computes on.
var devices sync.Map

type device struct{ name, hardware string }

// OnDevice says which device t and its subtests compute on, for the parity
// report. hardware is the device's own name.
func OnDevice(t testing.TB, name, hardware string) {
	test := t.Name()
	devices.Store(test, device{name, hardware})
	t.Cleanup(func() { devices.Delete(test) })
}

// deviceOf is what OnDevice said last of the test or of one that it is part of.
func deviceOf(test string) device {
	for {
		if d, ok := devices.Load(test); ok {
			return d.(device)
		}
		i := strings.LastIndexByte(test, '/')
		if i < 0 {
			return device{} // no device: Go code alone
		}
		test = test[:i]
	}
}

// RecordError writes the largest and the mean error of a comparison of n values
// for the parity report, if make parity asks for it. Close does so itself; this
// is for comparisons with a rule of their own. In name, what follows ": " tells
// cases of one thing apart; the report has one row for all of them.
func RecordError(t testing.TB, name string, n int, largest, mean float64, tol Tol) {
	t.Helper()
	record(t, parity.Comparison{
		Name: name, Measure: parity.ErrorOf, Values: n, Max: parity.Number(largest), Mean: parity.Number(mean),
		Tolerance: parity.Tolerance{Abs: tol.Abs, Rel: tol.Rel},
	})
}

// RecordValue writes another measure of got against want, such as a divergence,
// with the limit that the test sets.
func RecordValue(t testing.TB, name, measure string, n int, value, limit float64) {
	t.Helper()
	record(t, parity.Comparison{Name: name, Measure: measure, Values: n, Value: parity.Number(value), Limit: parity.Number(limit)})
}

func record(t testing.TB, c parity.Comparison) {
	t.Helper()
	path := os.Getenv(parity.Env)
	if path == "" {
		return
	}
	d := deviceOf(t.Name())
	c.Package, c.Test, c.Device, c.Hardware = testedPackage(), t.Name(), d.name, d.hardware
	if err := parity.Append(path, c); err != nil {
		t.Errorf("%s: %v", parity.Env, err)
	}
}

// testedPackage is the path, within the module, of the package that this binary tests.
var testedPackage = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSuffix(info.Path, ".test"), info.Main.Path+"/")
})
