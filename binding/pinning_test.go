//go:build cgo

package binding

import (
	"slices"
	"testing"
)

// TestPages: whole pages, each once, in order.
func TestPages(t *testing.T) {
	for name, tc := range map[string]struct{ spans, want []span }{
		"none":                  {nil, nil},
		"one inside a page":     {[]span{{4100, 10}}, []span{{4096, 4096}}},
		"two in one page":       {[]span{{4200, 10}, {4100, 10}}, []span{{4096, 4096}}},
		"neighbours are joined": {[]span{{8192, 4096}, {0, 8192}}, []span{{0, 12288}}},
		"apart":                 {[]span{{0, 1}, {8192, 1}}, []span{{0, 4096}, {8192, 4096}}},
		"one within another":    {[]span{{0, 12288}, {4096, 1}}, []span{{0, 12288}}},
	} {
		if got := pages(tc.spans, 4096); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestStreamFrom: by hand, of 4 experts that a row chooses 1 of, 32 rows choose
// 3.9996 different ones and 64 all of them; the CPU multiplies 32 times.
func TestStreamFrom(t *testing.T) {
	for name, tc := range map[string]struct {
		link, cpu float64
		n, k      int
		want      int
	}{
		"a fast link":                    {1, 1, 4, 1, 32},
		"just as fast":                   {1, 8, 4, 1, 32},
		"twice as many rows":             {1, 16, 4, 1, 64},
		"every row chooses every expert": {1, 100, 2, 2, 100},
		"a link too slow for any step":   {1, 1e6, 4, 1, 0},
	} {
		if got := streamFrom(tc.link, tc.cpu, tc.n, tc.k); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
