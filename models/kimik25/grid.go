package kimik25

import (
	"fmt"

	"github.com/inkling-go/inkling/internal/media"
)

// grid is the patches of one item: h rows and w columns in each of t frames. A
// clip of one frame is not a picture, since its patches know that they are
// frame 0.
type grid struct {
	clip    bool // frames have temporal positions
	t, h, w int
}

func imageGrid(h, w int) grid { return grid{t: 1, h: h, w: w} }

// clipGrid is the grid of t frames. In chunks a single frame counts as a
// picture, and no more than most frames fit an item: that is how the model was
// trained.
func clipGrid(t, h, w int, layout media.ClipLayout, most int) (grid, error) {
	switch {
	case t < 1:
		return grid{}, fmt.Errorf("a clip without frames")
	case layout == media.LayoutChunks && t > most:
		return grid{}, fmt.Errorf("%d frames in a chunk, at most %d have positions", t, most)
	case layout == media.LayoutChunks && t == 1:
		return imageGrid(h, w), nil
	}
	return grid{clip: true, t: t, h: h, w: w}, nil
}

func (gr grid) patches() int { return gr.t * gr.h * gr.w }

// places returns column and row of every patch.
func (gr grid) places() (cols, rows []int32) {
	for range gr.t {
		for r := range gr.h {
			for c := range gr.w {
				cols, rows = append(cols, int32(c)), append(rows, int32(r))
			}
		}
	}
	return cols, rows
}
