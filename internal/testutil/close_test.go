package testutil

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// recorder is a testing.TB that keeps what a comparison reports, so that a test
// can look at a failure without failing itself.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// wantError checks that the comparison returned ok == (want == "") and reported
// exactly one message that contains want.
func (r *recorder) wantError(t *testing.T, ok bool, want string) {
	t.Helper()
	if ok != (want == "") {
		t.Errorf("returned %t, want %t", ok, want == "")
	}
	switch {
	case want == "" && len(r.errors) > 0:
		t.Errorf("reported %q, want nothing", r.errors)
	case want != "" && (len(r.errors) != 1 || !strings.Contains(r.errors[0], want)):
		t.Errorf("reported %q, want one message with %q", r.errors, want)
	}
}

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

func TestClose(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want []float32
		tol       Tol
		err       string // part of the message, "" for none
	}{
		{"equal, no tolerance", []float32{1, -2, 0}, []float32{1, -2, 0}, Tol{}, ""},
		{"both empty", nil, nil, Tol{}, ""},
		{"one ulp, no tolerance", []float32{math.Nextafter32(1, 2)}, []float32{1}, Tol{}, "1 of 1 values"},
		{"within abs", []float32{0.5}, []float32{0.25}, Tol{Abs: 0.25}, ""},
		{"beyond abs", []float32{0.75}, []float32{0.25}, Tol{Abs: 0.25}, "error max 5.00e-01"},
		{"within rel", []float32{104}, []float32{100}, Tol{Rel: 0.05}, ""},
		{"beyond rel", []float32{106}, []float32{100}, Tol{Rel: 0.05}, "worst [0]: got 106, want 100"},
		{"rel is of want, not of got", []float32{100}, []float32{90}, Tol{Rel: 0.105}, "1 of 1 values"},
		{"rel and abs add up", []float32{106}, []float32{100}, Tol{Rel: 0.05, Abs: 1}, ""},
		{"negative values", []float32{-104}, []float32{-100}, Tol{Rel: 0.05}, ""},
		{"sign matters", []float32{-1}, []float32{1}, Tol{Abs: 1}, "1 of 1 values"},
		{"worst is not the largest error", []float32{1010, 2}, []float32{1000, 1}, Tol{Rel: 0.02}, "worst [1]: got 2, want 1"},
		{"mean over all", []float32{1, 3, 1, 1}, []float32{1, 1, 1, 1}, Tol{}, "error max 2.00e+00, mean 5.00e-01"},
		{"count of bad ones", []float32{0, 2, 2}, []float32{0, 0, 0}, Tol{Abs: 1}, "2 of 3 values"},
		{"got shorter", []float32{1}, []float32{1, 2}, Tol{}, "1 values, want 2"},
		{"got longer", []float32{1, 2}, []float32{1}, Tol{}, "2 values, want 1"},
		{"got is NaN", []float32{1, nan}, []float32{1, 2}, Tol{Rel: 1e9, Abs: 1e9}, "worst [1]: got NaN, want 2"},
		{"want is NaN", []float32{1}, []float32{nan}, Tol{Abs: 1e9}, "1 of 1 values"},
		{"both are NaN", []float32{nan}, []float32{nan}, Tol{Abs: 1e9}, "1 of 1 values"},
		{"equal infinities", []float32{inf, -inf}, []float32{inf, -inf}, Tol{}, ""},
		{"opposite infinities", []float32{inf}, []float32{-inf}, Tol{Rel: 1}, "1 of 1 values"},
		{"infinity for a number", []float32{inf}, []float32{1}, Tol{Abs: 1e9}, "1 of 1 values"},
		{"number for an infinity", []float32{1}, []float32{-inf}, Tol{Rel: 1}, "1 of 1 values"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{TB: t}
			r.wantError(t, Close(r, "x", tt.got, tt.want, tt.tol), tt.err)
		})
	}
}

func TestNMSE(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want []float32
		limit     float64
		err       string
	}{
		{"equal", []float32{1, 2}, []float32{1, 2}, 0, ""},
		{"both empty", nil, nil, 0, ""},
		{"both zero", []float32{0}, []float32{0}, 0, ""},
		{"at the limit", []float32{3, 5}, []float32{3, 4}, 0.04, ""}, // 1 / 25
		{"above the limit", []float32{3, 5}, []float32{3, 4}, 0.039, "NMSE 4.000e-02, limit 3.9e-02; worst [1]: got 5, want 4"},
		{"want all zero", []float32{1e-9}, []float32{0}, 1, "NMSE +Inf"},
		{"NaN", []float32{nan}, []float32{1}, 1, "NMSE NaN"},
		{"another length", []float32{1}, []float32{1, 2}, 1, "1 values, want 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{TB: t}
			r.wantError(t, NMSE(r, "x", tt.got, tt.want, tt.limit), tt.err)
		})
	}
}

func TestArgmax(t *testing.T) {
	for _, tt := range []struct {
		name string
		row  []float32
		want int
	}{
		{"empty", nil, -1},
		{"one", []float32{-7}, 0},
		{"negative", []float32{-3, -1, -2}, 1},
		{"first of equals", []float32{1, 2, 2}, 1},
		{"last", []float32{1, 2, inf}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Argmax(tt.row); got != tt.want {
				t.Errorf("Argmax(%v) = %d, want %d", tt.row, got, tt.want)
			}
		})
	}
}

func TestAgreeArgmax(t *testing.T) {
	want := []float32{0, 1, 5, 2, 3, 4, 9, 8}
	half := []float32{0, 1, 7, 2, 4, 3, 8, 9} // the same in rows 0 and 1 of 4
	for _, tt := range []struct {
		name  string
		got   []float32
		width int
		least float64
		err   string
	}{
		{"all", want, 2, 1, ""},
		{"half is enough", half, 2, 0.5, ""},
		{"half is too little", half, 2, 0.51, "in 2 of 4 rows (50.0 %), want 51.0 %; first other row 2: got 0, want 1"},
		{"width does not divide", want, 3, 0, "in rows of 3"},
		{"width zero", want, 0, 0, "in rows of 0"},
		{"another length", want[:2], 2, 0, "2 values, want 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{TB: t}
			r.wantError(t, AgreeArgmax(r, "x", tt.got, want, tt.width, tt.least), tt.err)
		})
	}
}
