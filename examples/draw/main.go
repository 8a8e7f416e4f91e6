// Draw writes the picture that "make demo" asks about: a red circle on the left
// and a blue square on the right, in the style of the drawings that the test
// checkpoint was trained on (white ground, flat colours, shapes of about 45 pixels).
//
//	go run ./examples/draw picture.png
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: draw PICTURE.png")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

func write(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	return png.Encode(f, picture())
}

// picture draws 160 x 80 pixels, which the model sees as 4 x 2 tiles of 40.
func picture() *image.RGBA {
	var (
		white = color.RGBA{255, 255, 255, 255}
		red   = color.RGBA{219, 28, 32, 255}
		blue  = color.RGBA{37, 64, 210, 255}
	)
	im := image.NewRGBA(image.Rect(0, 0, 160, 80))
	fill(im, im.Bounds(), white)
	disc(im, image.Pt(44, 40), 23, red)
	fill(im, image.Rect(94, 18, 138, 62), blue)
	return im
}

func fill(im *image.RGBA, r image.Rectangle, c color.RGBA) {
	draw.Draw(im, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// disc fills the pixels whose distance from the centre is at most radius.
func disc(im *image.RGBA, centre image.Point, radius int, c color.RGBA) {
	for dy := -radius; dy <= radius; dy++ {
		for dx := -radius; dx <= radius; dx++ {
			if dx*dx+dy*dy <= radius*radius {
				im.SetRGBA(centre.X+dx, centre.Y+dy, c)
			}
		}
	}
}
