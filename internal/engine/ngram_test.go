package engine

import (
	"slices"
	"testing"
)

func TestLookUp(t *testing.T) {
	for _, tc := range []struct {
		name string
		ids  []int32
		n    int
		want []int32
	}{
		{"nothing", nil, 3, nil},
		{"one token", []int32{1}, 3, nil},
		{"no repetition", []int32{1, 2, 3, 4}, 3, nil},
		{"one token repeats", []int32{1, 2, 3, 1}, 3, nil},
		{"two tokens repeat", []int32{1, 2, 3, 4, 1, 2}, 2, []int32{3, 4}},
		{"the longest one", []int32{9, 1, 2, 5, 8, 1, 2, 6, 9, 1, 2}, 1, []int32{5}},
		{"of equal ones the latest", []int32{1, 2, 5, 1, 2, 6, 1, 2}, 1, []int32{6}},
		{"it goes on in the same way", []int32{7, 1, 2, 1, 2}, 5, []int32{1, 2, 1, 2, 1}},
		{"of one token", []int32{5, 3, 3, 3}, 3, []int32{3, 3, 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := lookUp(nil, tc.ids, tc.n); !slices.Equal(got, tc.want) {
				t.Errorf("guesses %v, want %v", got, tc.want)
			}
		})
	}
}
