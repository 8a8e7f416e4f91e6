package inspectcmd

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/media"
)

// TestWriteNPY compares with the bytes of the format: magic, version, length of
// the header, header padded with spaces to a multiple of 64 bytes, values.
func TestWriteNPY(t *testing.T) {
	const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1), }"
	want := "\x93NUMPY\x01\x00\x76\x00" + header + strings.Repeat(" ", 128-10-len(header)-1) + "\n" +
		"\x00\x00\x80\x3f" + "\x00\x00\x00\xc0" + "\x00\x00\x80\x7f"
	var got bytes.Buffer
	if err := writeNPY(&got, "<f4", []int{3, 1}, []float32{1, -2}, []float32{float32(math.Inf(1))}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]byte(want), got.Bytes()); d != "" {
		t.Errorf("floats (-want +got):\n%s", d)
	}
	got.Reset()
	if err := writeNPY(&got, "<i4", []int{2}, []int32{-1, 258}); err != nil {
		t.Fatal(err)
	}
	if s := got.String(); !strings.Contains(s, "'shape': (2,), }") || !strings.HasSuffix(s, "\xff\xff\xff\xff\x02\x01\x00\x00") {
		t.Errorf("integers: %q", s)
	}
}

// TestDrawTiles: a drawing gives the pixels back, in their places.
func TestDrawTiles(t *testing.T) {
	cfg := media.TileConfig{Patch: 2, Temporal: 2, Mean: [3]float32{0.5, 0.4, 0.3}, Std: [3]float32{0.25, 0.5, 0.2}}
	a := &media.Image{W: 3, H: 2, Pix: make([]uint8, 18)}
	b := &media.Image{W: 3, H: 2, Pix: make([]uint8, 18)}
	for i := range a.Pix {
		a.Pix[i], b.Pix[i] = uint8(i*14), uint8(255-i*14)
	}
	ts, err := media.TilesPair(a, b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	im := drawTiles([]*media.TileSet{ts, ts}, 2, cfg) // a grid of 1 x 2 tiles, twice across and twice down
	const w, h = 2*(2+tileGap) + tileGap, 2 + 2*tileGap
	if got := im.Bounds().Size(); got.X != 2*w || got.Y != 2*h {
		t.Fatalf("size %v, want %d x %d", got, 2*w, 2*h)
	}
	seen := 0
	for i, frame := range []*media.Image{a, b} {
		for set := range 2 {
			for y := range 2 {
				for x := range 3 {
					px, py := i*w+tileGap+x/2*(2+tileGap)+x%2, set*h+tileGap+y
					r, g, bl, _ := im.At(px, py).RGBA()
					got := []uint8{uint8(r >> 8), uint8(g >> 8), uint8(bl >> 8)}
					if want := frame.Pix[3*(y*3+x):][:3]; !slices.Equal(got, want) {
						t.Errorf("frame %d, set %d, pixel %d,%d: %v, want %v", i, set, x, y, got, want)
					}
					seen++
				}
			}
		}
	}
	drawn := 0
	for y := range 2 * h {
		for x := range 2 * w {
			if im.At(x, y) != background {
				drawn++
			}
		}
	}
	if drawn != seen {
		t.Errorf("%d pixels drawn, want %d", drawn, seen)
	}
}

func TestDrawLevels(t *testing.T) {
	levels := make([]int32, 2*media.MelBins)
	levels[0] = 15                // first frame, lowest band: left, bottom
	levels[2*media.MelBins-1] = 3 // second frame, highest band: right, top
	im := drawLevels(levels, 2)
	for y := range media.MelBins * cell {
		for x := range 2 * cell {
			want := uint32(0)
			switch {
			case x < cell && y >= (media.MelBins-1)*cell:
				want = 255
			case x >= cell && y < cell:
				want = 51
			}
			if g, _, _, _ := im.At(x, y).RGBA(); g>>8 != want {
				t.Fatalf("pixel %d,%d is %d, want %d", x, y, g>>8, want)
			}
		}
	}
}
