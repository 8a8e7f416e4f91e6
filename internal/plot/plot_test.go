package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
)

func TestDecades(t *testing.T) {
	for _, tt := range []struct {
		name   string
		y      []float64
		lo, hi int
	}{
		{"between", []float64{2e-7, 3e-4}, -7, -3},
		{"on the lines", []float64{1e-6, 1e-4}, -6, -4},
		{"one value on a line", []float64{1e-5}, -5, -4},
		{"no logarithm", []float64{0, -1, math.NaN(), math.Inf(1), 0.5}, -1, 0},
		{"nothing", []float64{0}, -8, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if lo, hi := decades([]Line{{Y: tt.y}}); lo != tt.lo || hi != tt.hi {
				t.Errorf("from %d to %d, want %d to %d", lo, hi, tt.lo, tt.hi)
			}
		})
	}
}

var example = Panel{
	Title: "A & B", YLabel: "y", Places: []string{"p", "q", "r"},
	Lines: []Line{{Name: "<one>", Colour: Colour(0), Y: []float64{0.1, math.NaN(), 10}}, {Name: "two", Colour: Ink, Dash: "1 3", Y: []float64{1, 1, 1}}},
}

// TestSVG: whatever the texts are, the document is XML, with a point for each value
// of a coloured line.
func TestSVG(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSVG(&b, "t < u", []Panel{example, example}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "<circle"); n != 4 {
		t.Errorf("%d points, want 4", n)
	}
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPNG looks at the places where lines go through.
func TestPNG(t *testing.T) {
	var b bytes.Buffer
	if err := WritePNG(&b, []Panel{example, example}); err != nil {
		t.Fatal(err)
	}
	im, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if s := im.Bounds().Size(); s.X != plotWidth || s.Y != 2*panelHeight {
		t.Fatalf("%v pixels", s)
	}
	blue, white := color.RGBA{0x2f, 0x81, 0xf7, 255}, color.RGBA{255, 255, 255, 255}
	for _, tc := range []struct {
		x, y int
		want color.RGBA
	}{
		{int(example.x(0)), bottom, blue}, // 0.1 is the lowest
		{int(example.x(2)), topMargin, blue},
		{int(example.x(2)), topMargin + panelHeight, blue},
		{int(example.x(1)) + 20, bottom - 20, white},
		{0, 0, white},
	} {
		r, g, bl, a := im.At(tc.x, tc.y).RGBA()
		if got := (color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(bl >> 8), uint8(a >> 8)}); got != tc.want {
			t.Errorf("(%d, %d) is %v, want %v", tc.x, tc.y, got, tc.want)
		}
	}
}

// TestValues: numbers stand at points if they are asked for.
func TestValues(t *testing.T) {
	for _, values := range []bool{false, true} {
		p := Panel{Places: []string{"1", "4"}, Values: values, Lines: []Line{{Name: "depth", Colour: Colour(0), Y: []float64{42.5, 1905.31}}}}
		var b bytes.Buffer
		if err := WriteSVG(&b, "title", []Panel{p}); err != nil {
			t.Fatal(err)
		}
		for _, number := range []string{">42.5<", ">1905<"} {
			if strings.Contains(b.String(), number) != values {
				t.Errorf("asked for numbers: %v; %s is there: %v", values, number, !values)
			}
		}
	}
}
