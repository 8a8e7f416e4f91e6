package testutil

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/inkling-go/inkling/internal/parity"
)

// TestRecord: what each comparison of this package writes, and for which device.
func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	t.Setenv(parity.Env, path)
	x := []float32{1, 2, 4, 8}
	Close(t, "no device", x, x, Tol{Rel: 1e-3, Abs: 1e-4})
	t.Run("on", func(t *testing.T) {
		OnDevice(t, "CPU", "a processor")
		Close(t, "two of four", []float32{1.5, 2, 4, 7.75}, x, Tol{Abs: 0.5})
		t.Run("and below", func(t *testing.T) {
			CloseMean(t, "mean", []float32{1.5, 2, 4, 7.5}, x, 0.25)
			NMSE(t, "nmse", []float32{1, 2, 4, 9}, x, 0.5)
			AgreeArgmax(t, "rows", []float32{0, 1, 1, 0}, []float32{0, 1, 0, 1}, 2, 0.5)
		})
	})
	r := &recorder{TB: t}
	Close(r, "a failure", []float32{nan}, []float32{1}, Tol{})

	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := parity.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	const pkg = "internal/testutil"
	want := []parity.Comparison{
		{
			Package: pkg, Test: "TestRecord", Name: "no device", Measure: parity.ErrorOf, Values: 4,
			Tolerance: parity.Tolerance{Abs: 1e-4, Rel: 1e-3},
		},
		{
			Package: pkg, Test: "TestRecord/on", Name: "two of four", Device: "CPU", Hardware: "a processor",
			Measure: parity.ErrorOf, Values: 4, Max: 0.5, Mean: 0.1875, Tolerance: parity.Tolerance{Abs: 0.5},
		},
		{
			Package: pkg, Test: "TestRecord/on/and_below", Name: "mean", Device: "CPU", Hardware: "a processor",
			Measure: parity.ErrorOf, Values: 4, Max: 0.5, Mean: 0.25, Tolerance: parity.Tolerance{Mean: 0.25},
		},
		{
			Package: pkg, Test: "TestRecord/on/and_below", Name: "nmse", Device: "CPU", Hardware: "a processor",
			Measure: "NMSE", Values: 4, Value: 1. / 85, Limit: 0.5,
		},
		{
			Package: pkg, Test: "TestRecord/on/and_below", Name: "rows", Device: "CPU", Hardware: "a processor",
			Measure: "same argmax", Values: 4, Value: 0.5, Limit: 0.5,
		},
		{
			Package: pkg, Test: "TestRecord", Name: "a failure", Measure: parity.ErrorOf, Values: 1,
			Max: parity.Number(math.Inf(1)), Mean: parity.Number(math.Inf(1)),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestRecordNothing: without the variable no file appears, and a path that can
// not be written fails the test that wanted to.
func TestRecordNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv(parity.Env, "")
	Close(t, "x", nil, nil, Tol{})
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("files %v, error %v, want none", files, err)
	}
	t.Setenv(parity.Env, filepath.Join(dir, "none", "lines"))
	r := &recorder{TB: t}
	Close(r, "x", nil, nil, Tol{})
	if len(r.errors) != 1 {
		t.Errorf("reported %q, want one message", r.errors)
	}
}

func TestCloseMean(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want []float32
		most      float64
		err       string
	}{
		{"equal", []float32{1, 2}, []float32{1, 2}, 0, ""},
		{"both empty", nil, nil, 0, ""},
		{"at the limit", []float32{1, 4}, []float32{1, 2}, 1, ""},
		{"above the limit", []float32{1, 4}, []float32{1, 2}, 0.99, "error mean 1.00e+00, limit 9.9e-01; max 2.00e+00"},
		{"NaN", []float32{nan}, []float32{1}, 1e9, "error mean +Inf"},
		{"another length", []float32{1}, []float32{1, 2}, 1, "1 values, want 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{TB: t}
			r.wantError(t, CloseMean(r, "x", tt.got, tt.want, tt.most), tt.err)
		})
	}
}
