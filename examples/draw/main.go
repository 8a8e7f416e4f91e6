// Draw writes what the demos ask about, in the style of the drawings that the test
// checkpoints were trained on: plain ground, flat colours.
//
//	go run ./examples/draw picture.png   a red circle on the left and a blue square on the right
//	go run ./examples/draw clip.gif      a red circle that moves to the right, four frames in two seconds
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/png"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: draw PICTURE.png | CLIP.gif")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

// write draws the picture or the clip, as the end of the name says.
func write(path string) (err error) {
	encode := func(w io.Writer) error { return png.Encode(w, picture()) }
	switch filepath.Ext(path) {
	case ".png":
	case ".gif":
		encode = func(w io.Writer) error { return gif.EncodeAll(w, clip()) }
	default:
		return fmt.Errorf("%s: want a name that ends in .png or .gif", path)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	return encode(f)
}

var (
	white = color.RGBA{255, 255, 255, 255}
	grey  = color.RGBA{240, 240, 240, 255}
	red   = color.RGBA{219, 28, 32, 255}
	blue  = color.RGBA{37, 64, 210, 255}
)

// picture draws 160 x 80 pixels with shapes of about 45, which Inkling sees as
// 4 x 2 tiles of 40.
func picture() *image.RGBA {
	im := image.NewRGBA(image.Rect(0, 0, 160, 80))
	fill(im, im.Bounds(), white)
	disc(im, image.Pt(44, 40), 23, red)
	fill(im, image.Rect(94, 18, 138, 62), blue)
	return im
}

// clip draws frames of 84 x 84 pixels, which Kimi sees as 6 x 6 patches of 14, at
// the 2 frames a second that it takes.
func clip() *gif.GIF {
	g := &gif.GIF{}
	for _, x := range []int{22, 35, 49, 62} {
		im := image.NewPaletted(image.Rect(0, 0, 84, 84), color.Palette{grey, red})
		disc(im, image.Pt(x, 44), 15, red)
		g.Image, g.Delay = append(g.Image, im), append(g.Delay, 50) // hundredths of a second
	}
	return g
}

func fill(im draw.Image, r image.Rectangle, c color.RGBA) {
	draw.Draw(im, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// disc fills the pixels whose distance from the centre is at most radius.
func disc(im draw.Image, centre image.Point, radius int, c color.RGBA) {
	for dy := -radius; dy <= radius; dy++ {
		for dx := -radius; dx <= radius; dx++ {
			if dx*dx+dy*dy <= radius*radius {
				im.Set(centre.X+dx, centre.Y+dy, c)
			}
		}
	}
}
