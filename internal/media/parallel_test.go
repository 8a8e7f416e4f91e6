package media

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInParts: every index is done once, in as many parts as there are processors and work for.
func TestInParts(t *testing.T) {
	for _, c := range []struct{ procs, n, least, parts int }{
		{4, 0, 8, 1},
		{4, 1, 8, 1},
		{4, 15, 8, 1}, // less than two parts
		{4, 16, 8, 2},
		{4, 31, 8, 3},
		{4, 1000, 8, 4},
		{3, 1000, 1, 3},
		{1, 1000, 1, 1},
	} {
		t.Run(fmt.Sprintf("procs=%d n=%d least=%d", c.procs, c.n, c.least), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
			var mu sync.Mutex
			done, parts := make([]int, c.n), 0
			inParts(c.n, c.least, func(first, end int) {
				mu.Lock()
				defer mu.Unlock()
				parts++
				for i := first; i < end; i++ {
					done[i]++
				}
				if size := end - first; size < min(c.least, c.n) {
					t.Errorf("%d to %d: want %d at least", first, end, c.least)
				}
			})
			want := make([]int, c.n)
			for i := range want {
				want[i] = 1
			}
			if d := cmp.Diff(want, done); d != "" || parts != c.parts {
				t.Errorf("%d parts, want %d; times that each was done (-want +got):\n%s", parts, c.parts, d)
			}
		})
	}
}

// TestPartsAreTheWhole: features and tiles are the same bit for bit on one processor and on
// several.
func TestPartsAreTheWhole(t *testing.T) {
	samples := noise(5*melParts*melHop + 123)
	im := newImage(431, 353)
	for i := range im.Pix {
		im.Pix[i] = uint8(i * 7 % 251)
	}
	compute := func(procs int) ([]float32, []float32) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		mel, err := Mel(samples)
		if err != nil {
			t.Fatal(err)
		}
		set, err := Tiles(im, published)
		if err != nil {
			t.Fatal(err)
		}
		return mel, set.Pix
	}
	mel, pix := compute(1)
	for _, procs := range []int{2, 3, 8} {
		m, p := compute(procs)
		if d := cmp.Diff(mel, m); d != "" {
			t.Errorf("features on %d processors (-1 +%d):\n%s", procs, procs, d)
		}
		if d := cmp.Diff(pix, p); d != "" {
			t.Errorf("tiles on %d processors (-1 +%d):\n%s", procs, procs, d)
		}
	}
}
