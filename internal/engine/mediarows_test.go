package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReuse: the memory of the largest medium that has served is kept for the next one, but
// not as much as nobody should hold without need.
func TestReuse(t *testing.T) {
	served := func(sizes ...int) (list []mediaRows) {
		for _, n := range sizes {
			list = append(list, mediaRows{medium: &medium{values: make([]float32, n)}})
		}
		return list
	}
	s := &scheduler{}
	for _, c := range []struct {
		name  string
		sizes []int
		want  int // values that there is room for
	}{
		{"none", nil, 0},
		{"of several", []int{3, 9, 5}, 9},
		{"smaller", []int{4}, 9},
		{"never encoded", []int{0}, 9},
		{"too large", []int{maxSpare + 1, 10}, 10},
	} {
		list := served(c.sizes...)
		if s.reuse(list); cap(s.spare) != c.want {
			t.Errorf("%s: room for %d values, want %d", c.name, cap(s.spare), c.want)
		}
		for _, m := range list {
			if m.values != nil {
				t.Errorf("%s: a medium still has its values", c.name)
			}
		}
	}
}

// TestMediaOf: vectors of one medium are not copied, those of several are joined and leave the
// first as it is.
func TestMediaOf(t *testing.T) {
	a := &medium{rows: 3, values: []float32{0, 1, 10, 11, 20, 21}}
	b := &medium{rows: 2, values: []float32{30, 31, 40, 41}}
	r := rows{media: []mediaRows{{a, 1}, {b, 5}}}
	for _, c := range []struct {
		name       string
		first, end int
		values     []float32
		at         []int32
		copied     bool
	}{
		{"before", 0, 1, nil, nil, false},
		{"between", 4, 5, nil, nil, false},
		{"one", 0, 5, []float32{0, 1, 10, 11, 20, 21}, []int32{1, 2, 3}, false},
		{"a part", 2, 3, []float32{10, 11}, []int32{0}, false},
		{"two", 2, 6, []float32{10, 11, 20, 21, 30, 31}, []int32{0, 1, 3}, true},
	} {
		values, at := r.mediaOf(c.first, c.end, 2)
		if d := cmp.Diff(c.values, values) + cmp.Diff(c.at, at); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if len(values) > 0 && (&values[0] == &a.values[2*max(c.first-1, 0)]) == c.copied {
			t.Errorf("%s: copied %v, want %v", c.name, !c.copied, c.copied)
		}
	}
	if d := cmp.Diff([]float32{0, 1, 10, 11, 20, 21}, a.values); d != "" {
		t.Errorf("the first medium (-want +got):\n%s", d)
	}
}
