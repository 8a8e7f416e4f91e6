package plot

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// WritePNG draws panels on white. Names of places stand upright, in place of SVG's
// slanted ones.
func WritePNG(w io.Writer, panels []Panel) error {
	im := image.NewRGBA(image.Rect(0, 0, plotWidth, panelHeight*len(panels)))
	draw.Draw(im, im.Bounds(), image.White, image.Point{}, draw.Src)
	for i := range panels {
		(&raster{im, i * panelHeight}).panel(&panels[i])
	}
	return png.Encode(w, im)
}

// raster draws one panel, top pixels below the picture's top.
type raster struct {
	im  *image.RGBA
	top int
}

func (r *raster) panel(p *Panel) {
	lo, hi := decades(p.Lines)
	ink := parse(Ink)
	r.text(leftMargin, topMargin-16, ink, p.Title+" ("+p.YLabel+")")
	pale := color.RGBA{220, 222, 225, 255}
	for d := lo; d <= hi; d++ {
		at := p.y(math.Pow10(d), lo, hi)
		r.line(leftMargin, at, right, at, pale, 1)
		r.text(leftMargin-40, at+4, ink, "1e"+strconv.Itoa(d))
	}
	r.line(leftMargin, topMargin, leftMargin, bottom, ink, 1)
	r.line(leftMargin, bottom, right, bottom, ink, 1)
	for i, n := range p.Places {
		r.text(p.x(i)-float64(7*len(n))/2, bottom+16+float64(14*(i%2)), ink, n) // neighbours at two heights
	}
	for i, l := range p.Lines {
		c := parse(l.Colour)
		for j := range l.Y {
			if !plotted(l.Y[j]) {
				continue
			}
			x, y := p.x(j), p.y(l.Y[j], lo, hi)
			r.line(x-1, y, x+2, y, c, 4)
			if j > 0 && plotted(l.Y[j-1]) {
				r.line(p.x(j-1), p.y(l.Y[j-1], lo, hi), x, y, c, 2)
			}
		}
		at := float64(topMargin + 8 + 18*i)
		r.line(right+12, at, right+36, at, c, 2)
		r.text(right+42, at+4, ink, l.Name)
	}
}

// line draws a straight line, width pixels wide.
func (r *raster) line(x0, y0, x1, y1 float64, c color.Color, width int) {
	steps := int(math.Ceil(max(math.Abs(x1-x0), math.Abs(y1-y0), 1)))
	for i := range steps + 1 {
		f := float64(i) / float64(steps)
		x, y := int(math.Round(x0+f*(x1-x0))), int(math.Round(y0+f*(y1-y0)))+r.top
		draw.Draw(r.im, image.Rect(x-(width-1)/2, y-(width-1)/2, x+width/2+1, y+width/2+1), image.NewUniform(c), image.Point{}, draw.Src)
	}
}

// text writes s with its base line at y.
func (r *raster) text(x, y float64, c color.Color, s string) {
	d := font.Drawer{
		Dst: r.im, Src: image.NewUniform(c), Face: basicfont.Face7x13,
		Dot: fixed.P(int(math.Round(x)), int(math.Round(y))+r.top),
	}
	d.DrawString(s)
}

// parse reads a colour in the form of #2f81f7.
func parse(s string) color.RGBA {
	n, err := strconv.ParseUint(s[1:], 16, 32)
	if err != nil {
		return color.RGBA{A: 255}
	}
	return color.RGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255}
}
