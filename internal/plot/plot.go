// Package plot draws lines over named places on a logarithmic axis, as SVG and as
// PNG.
package plot

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
)

// Sizes of a plot in pixels. Panels stand below each other.
const (
	plotWidth   = 790
	panelHeight = 320
	leftMargin  = 64
	rightMargin = 176 // for the legend
	topMargin   = 36
	underMargin = 72 // for the names of the places

	right  = plotWidth - rightMargin
	bottom = panelHeight - underMargin
)

// Ink can be read on white and on black; the background is left open.
const Ink = "#7d8590"

// Colour returns the colour of line i, to be read on both as well.
func Colour(i int) string {
	colours := [...]string{"#2f81f7", "#db7c26", "#3fa34d", "#b45fd6"}
	return colours[i%len(colours)]
}

// Line is one line of a panel; NaN and values that a logarithm does not have are
// left out.
type Line struct {
	Name   string
	Colour string
	Dash   string // of SVG's stroke-dasharray
	Y      []float64
}

// Panel is one drawing: lines over places, values in decades.
type Panel struct {
	Title  string
	YLabel string
	Places []string
	Lines  []Line
	Values bool // written at their points, in SVG
}

// x is where place i stands.
func (p *Panel) x(i int) float64 {
	return leftMargin + (float64(i)+0.5)*(right-leftMargin)/float64(len(p.Places))
}

// y is where a value between the powers of ten lo and hi stands.
func (p *Panel) y(v float64, lo, hi int) float64 {
	return bottom - (math.Log10(v)-float64(lo))/float64(hi-lo)*(bottom-topMargin)
}

// WriteSVG draws panels. The title is that of the document.
func WriteSVG(w io.Writer, title string, panels []Panel) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="11">`+"\n",
		plotWidth, panelHeight*len(panels))
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	for i := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*panelHeight)
		panels[i].svg(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// svg draws one panel.
func (p *Panel) svg(b *bytes.Buffer) {
	lo, hi := decades(p.Lines)
	text := func(x, y float64, attrs, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s" %s>%s</text>`+"\n", x, y, Ink, attrs, html.EscapeString(s))
	}
	text(leftMargin, topMargin-16, `font-size="13" font-weight="bold"`, p.Title)

	for d := lo; d <= hi; d++ {
		at := p.y(math.Pow10(d), lo, hi)
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-opacity="0.3"/>`+"\n", leftMargin, right, at, at, Ink)
		text(leftMargin-8, at+4, `text-anchor="end"`, fmt.Sprintf("1e%d", d))
	}
	fmt.Fprintf(b, `<path d="M%d %dV%.1fH%d" fill="none" stroke="%s"/>`+"\n", leftMargin, topMargin, float64(bottom), right, Ink)
	middle := float64(topMargin+bottom) / 2
	text(16, middle, fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 16 %.1f)"`, middle), p.YLabel)
	for i, n := range p.Places {
		text(p.x(i), bottom+14, fmt.Sprintf(`text-anchor="end" transform="rotate(-40 %.1f %.1f)"`, p.x(i), float64(bottom+14)), n)
	}

	for i, l := range p.Lines {
		style := fmt.Sprintf(`stroke="%s" stroke-width="1.8" stroke-dasharray="%s" fill="none"`, l.Colour, l.Dash)
		var path strings.Builder
		up := true // the pen
		for j, v := range l.Y {
			if !plotted(v) {
				up = true
				continue
			}
			command := 'L'
			if up {
				command, up = 'M', false
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", command, p.x(j), p.y(v, lo, hi))
			if l.Colour != Ink {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n", p.x(j), p.y(v, lo, hi), l.Colour)
			}
			if p.Values {
				text(p.x(j), p.y(v, lo, hi)-7, `text-anchor="middle"`, strconv.FormatFloat(v, 'g', 4, 64))
			}
		}
		fmt.Fprintf(b, `<path d="%s" %s/>`+"\n", path.String(), style)
		at := float64(topMargin + 8 + 18*i)
		fmt.Fprintf(b, `<path d="M%d %.1fh24" %s/>`+"\n", right+12, at, style)
		text(right+42, at+4, "", l.Name)
	}
}

// decades are the powers of ten below and above all values.
func decades(lines []Line) (lo, hi int) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for _, v := range l.Y {
			if plotted(v) {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	if least > most {
		return -8, 0 // nothing to draw
	}
	lo = int(math.Floor(math.Log10(least)))
	if math.Pow10(lo+1) <= least { // the logarithm is rounded
		lo++
	}
	for hi = lo + 1; math.Pow10(hi) < most; hi++ {
	}
	return lo, hi
}

// plotted reports whether v has a place on a logarithmic axis.
func plotted(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
