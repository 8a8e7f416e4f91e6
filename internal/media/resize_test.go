package media

import (
	"fmt"
	"strings"
	"testing"
)

// The results equal Pillow's byte for byte, enlarging and shrinking, in one
// direction or both.
func TestResizePillow(t *testing.T) {
	p := openPillow(t)
	source := p.image(t, "resize/source")
	filters := map[string]filter{"bilinear": bilinear, "bicubic": bicubic, "lanczos": lanczos}
	n := 0
	for _, name := range p.Names() {
		filter, size, ok := strings.Cut(strings.TrimPrefix(name, "resize/"), "/")
		if !ok || !strings.HasPrefix(name, "resize/") {
			continue
		}
		n++
		t.Run(name, func(t *testing.T) {
			var w, h int
			if _, err := fmt.Sscanf(size, "%dx%d", &w, &h); err != nil {
				t.Fatal(err)
			}
			pixelsClose(t, name, resize(source, w, h, filters[filter]), p.image(t, name), 0)
		})
	}
	if n != 21 {
		t.Errorf("%d sizes tested, want 21", n)
	}
}

// A picture of one colour stays that colour: the rounded weights of no filter
// add up to more or less than one by half a level.
func TestResizeFlat(t *testing.T) {
	im := newImage(31, 17)
	im.fill([3]uint8{255, 128, 1})
	for _, f := range []filter{bilinear, bicubic, lanczos} {
		for _, w := range []int{1, 2, 30, 32, 500} {
			want := newImage(w, w+1)
			want.fill([3]uint8{255, 128, 1})
			pixelsClose(t, fmt.Sprintf("filter %d to %d", f, w), resize(im, w, w+1, f), want, 0)
		}
	}
}

func TestResizeSameSize(t *testing.T) {
	im := newImage(3, 2)
	if got := resize(im, 3, 2, lanczos); got != im {
		t.Error("a picture of the right size was copied")
	}
}
