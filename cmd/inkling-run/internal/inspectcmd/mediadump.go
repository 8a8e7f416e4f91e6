package inspectcmd

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/internal/media"
)

// dumpTiles writes the tiles of a picture (one set), or of the pairs of a video.
// Every frame of a picture's tiles is the same, so that one is drawn.
func (v *viewer) dumpTiles(sets []*media.TileSet, picture bool) error {
	s := sets[0]
	shape := []int{s.N, s.Temporal, s.Patch, s.Patch, 3}
	drawn := 1
	if !picture {
		shape = append([]int{len(sets)}, shape...)
		drawn = s.Temporal
	}
	if v.dumpsPNG() {
		return v.writePNG(drawTiles(sets, drawn, v.tiles))
	}
	return files.Write(v.dump, func(w io.Writer) error {
		values := make([][]float32, len(sets))
		for i, s := range sets {
			values[i] = s.Pix
		}
		return writeNPY(w, "<f4", shape, values...)
	})
}

// dumpLevels writes the dMel levels of a sound.
//
//	levels: [frames, MelBins], 0..DMelLevels-1
func (v *viewer) dumpLevels(levels []int32, frames int) error {
	if v.dumpsPNG() {
		return v.writePNG(drawLevels(levels, frames))
	}
	return files.Write(v.dump, func(w io.Writer) error {
		return writeNPY(w, "<i4", []int{frames, media.MelBins}, levels)
	})
}

func (v *viewer) dumpsPNG() bool { return strings.ToLower(filepath.Ext(v.dump)) == ".png" }

func (v *viewer) writePNG(im image.Image) error {
	return files.Write(v.dump, func(w io.Writer) error { return png.Encode(w, im) })
}

// writeNPY writes an array in NumPy's format, version 1.0; its values come in
// any number of slices, one behind the other.
//
// Source: numpy.lib.format.
func writeNPY[T float32 | int32](w io.Writer, descr string, shape []int, values ...[]T) error {
	dims := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
	if len(shape) == 1 {
		dims += ","
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	const before = 10 // magic, version, length
	header += strings.Repeat(" ", 63-(before+len(header))%64) + "\n"
	b := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(b, "\x93NUMPY\x01\x00%c%c", byte(len(header)), byte(len(header)>>8))
	b.WriteString(header)
	for _, vs := range values {
		for _, v := range vs {
			var bits uint32
			switch v := any(v).(type) {
			case float32:
				bits = math.Float32bits(v)
			case int32:
				bits = uint32(v)
			}
			b.Write(binary.LittleEndian.AppendUint32(b.AvailableBuffer(), bits))
		}
	}
	return b.Flush() // with the first error of all writes
}

const tileGap = 2 // pixels between the tiles of a drawing

var background = color.RGBA{128, 128, 128, 255}

// drawTiles draws sets of tiles below each other, the first n frames of the
// tiles side by side. What is padding stays background.
func drawTiles(sets []*media.TileSet, n int, cfg media.TileConfig) image.Image {
	s := sets[0]
	step := s.Patch + tileGap
	w, h := s.Cols*step+tileGap, s.Rows*step+tileGap
	out := image.NewRGBA(image.Rect(0, 0, w*n, h*len(sets)))
	for i := 0; i < len(out.Pix); i += 4 {
		out.Pix[i], out.Pix[i+1], out.Pix[i+2], out.Pix[i+3] = background.R, background.G, background.B, background.A
	}
	tile := s.Patch * s.Patch * 3
	for i, s := range sets {
		for t := range s.N {
			for frame := range n {
				at := (t*s.Temporal + frame) * tile
				x0, y0 := frame*w+tileGap+t%s.Cols*step, i*h+tileGap+t/s.Cols*step
				drawTile(out, x0, y0, s.Patch, s.Pix[at:at+tile], cfg)
			}
		}
	}
	return out
}

// drawTile undoes the normalisation of a tile: [patch, patch, 3].
func drawTile(out *image.RGBA, x0, y0, patch int, pix []float32, cfg media.TileConfig) {
	for i := range patch * patch {
		var rgb [3]uint8
		padding := false
		for c := range rgb {
			level := math.Round(255 * (float64(pix[3*i+c])*float64(cfg.Std[c]) + float64(cfg.Mean[c])))
			padding = padding || level < 0
			rgb[c] = uint8(min(max(level, 0), 255))
		}
		if !padding {
			out.SetRGBA(x0+i%patch, y0+i/patch, color.RGBA{rgb[0], rgb[1], rgb[2], 255})
		}
	}
}

const cell = 4 // pixels of one level of a drawing

// drawLevels draws dMel levels: time goes right and frequency up, loud is white.
func drawLevels(levels []int32, frames int) image.Image {
	out := image.NewGray(image.Rect(0, 0, frames*cell, media.MelBins*cell))
	for y := range out.Rect.Dy() {
		mel := media.MelBins - 1 - y/cell
		for x := range out.Rect.Dx() {
			out.Pix[y*out.Stride+x] = uint8(levels[x/cell*media.MelBins+mel] * 255 / (media.DMelLevels - 1))
		}
	}
	return out
}
