package main

import (
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "picture.png")
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	im, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := im.Bounds(), image.Rect(0, 0, 160, 80); got != want {
		t.Fatalf("bounds %v, want %v", got, want)
	}
	for _, tt := range []struct {
		name string
		x, y int
		red  bool
		blue bool
	}{
		{"ground in the corner", 0, 0, false, false},
		{"ground between the shapes", 80, 40, false, false},
		{"centre of the circle", 44, 40, true, false},
		{"leftmost pixel of the circle", 21, 40, true, false},
		{"corner of the circle's box", 22, 18, false, false},
		{"centre of the square", 116, 40, false, true},
		{"top left pixel of the square", 94, 18, false, true},
		{"bottom right pixel of the square", 137, 61, false, true},
		{"right of the square", 138, 61, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := color.RGBAModel.Convert(im.At(tt.x, tt.y)).(color.RGBA)
			red := c.R > 200 && c.G < 50 && c.B < 50
			blue := c.R < 50 && c.G < 80 && c.B > 180
			white := c == color.RGBA{255, 255, 255, 255}
			if red != tt.red || blue != tt.blue || white == (tt.red || tt.blue) {
				t.Errorf("pixel %d,%d is %v, want red %t, blue %t", tt.x, tt.y, c, tt.red, tt.blue)
			}
		})
	}
}

// TestWriteClip: the circle is where it should be in each frame, and nowhere else.
func TestWriteClip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clip.gif")
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, err := gif.DecodeAll(f)
	if err != nil {
		t.Fatal(err)
	}
	left := []int{7, 20, 34, 47} // of the circle, which is 31 pixels wide
	if len(g.Image) != len(left) {
		t.Fatalf("%d frames, want %d", len(g.Image), len(left))
	}
	for i, im := range g.Image {
		if im.Bounds() != image.Rect(0, 0, 84, 84) || g.Delay[i] != 50 {
			t.Errorf("frame %d: bounds %v for %d hundredths", i, im.Bounds(), g.Delay[i])
		}
		for x := range 84 {
			want := color.RGBA{240, 240, 240, 255}
			if left[i] <= x && x < left[i]+31 {
				want = color.RGBA{219, 28, 32, 255}
			}
			if c := color.RGBAModel.Convert(im.At(x, 44)); c != want {
				t.Fatalf("frame %d, column %d of the middle row: %v, want %v", i, x, c, want)
			}
		}
	}
}

func TestWriteErrors(t *testing.T) {
	for _, name := range []string{"missing/picture.png", "missing/clip.gif", "picture.bmp"} {
		if err := write(filepath.Join(t.TempDir(), name)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
