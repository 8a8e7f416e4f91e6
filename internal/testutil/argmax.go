package testutil

import "testing"

// Argmax returns the index of the largest value, the first one of equals, and
// -1 for an empty row.
func Argmax(row []float32) int {
	best := -1
	for i, v := range row {
		if best < 0 || v > row[best] {
			best = i
		}
	}
	return best
}

// AgreeArgmax cuts got and want into rows of width values (the logits of one
// position) and fails the test when fewer than the share least of the rows have
// their largest value in the same place. It is the measure for quantised and
// half-precision runs, where single logits say little. It reports whether all is
// well.
func AgreeArgmax(t testing.TB, name string, got, want []float32, width int, least float64) bool {
	t.Helper()
	if len(got) != len(want) || width <= 0 || len(want) == 0 || len(want)%width != 0 {
		t.Errorf("%s: %d values, want %d, in rows of %d", name, len(got), len(want), width)
		return false
	}
	rows, agree, first := len(want)/width, 0, -1
	for r := range rows {
		if Argmax(row(got, r, width)) == Argmax(row(want, r, width)) {
			agree++
		} else if first < 0 {
			first = r
		}
	}
	share := float64(agree) / float64(rows)
	RecordValue(t, name, "same argmax", len(want), share, least)
	if share < least {
		g, w := Argmax(row(got, first, width)), Argmax(row(want, first, width))
		t.Errorf("%s: largest value in the same place in %d of %d rows (%.1f %%), want %.1f %%; first other row %d: got %d, want %d",
			name, agree, rows, 100*share, 100*least, first, g, w)
		return false
	}
	return true
}

func row(values []float32, r, width int) []float32 {
	return values[r*width : (r+1)*width]
}
