package parity

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Sizes of the plot in pixels. Panels stand below each other.
const (
	plotWidth   = 790
	panelHeight = 320
	leftMargin  = 64
	rightMargin = 176 // for the legend
	topMargin   = 36
	underMargin = 72 // for the names of the layers
)

// Colours that can be read on white and on black; the background is left open.
const ink = "#7d8590"

var colours = []string{"#2f81f7", "#db7c26", "#3fa34d", "#b45fd6"}

// line is one line of a panel; NaN and values that a logarithm does not have are left out.
type line struct {
	name   string
	colour string
	dash   string // of SVG's stroke-dasharray
	y      []float64
}

// WritePlot draws the error of each layer's output as SVG, one panel for each
// model.
func (r *Report) WritePlot(w io.Writer) error {
	models := r.tapped()
	var b bytes.Buffer
	height := panelHeight * len(models)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="11">`+"\n",
		plotWidth, height)
	b.WriteString("<title>Error of each layer against the reference</title>\n")
	for i, m := range models {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*panelHeight)
		names, lines := m.lines()
		panel(&b, "Error of each layer against the reference: "+m.name+" on "+m.device, names, lines)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// lines are the largest and the mean errors of each run, and the fixed part of
// the first run's tolerance, over the outputs of layers and the logits.
func (m *tapped) lines() (names []string, lines []line) {
	var taps []string
	for _, n := range m.names {
		if short, ok := strings.CutPrefix(n, "hidden."); ok || n == "logits" {
			taps, names = append(taps, n), append(names, short)
		}
	}
	values := func(run tapRun, of func(Comparison) float64) []float64 {
		var y []float64
		for _, n := range taps {
			v := math.NaN()
			if c, ok := run.of[n]; ok {
				v = of(c)
			}
			y = append(y, v)
		}
		return y
	}
	for i, run := range m.runs {
		colour := colours[i%len(colours)]
		lines = append(lines,
			line{run.name + ", max", colour, "", values(run, func(c Comparison) float64 { return float64(c.Max) })},
			line{run.name + ", mean", colour, "5 4", values(run, func(c Comparison) float64 { return float64(c.Mean) })})
	}
	if len(m.runs) > 0 {
		lines = append(lines, line{
			m.runs[0].name + ", tolerance", ink, "1 3",
			values(m.runs[0], func(c Comparison) float64 { return c.Tolerance.Abs }),
		})
	}
	return names, lines
}

// panel draws lines over the named places of the x axis, errors in decades.
func panel(b *bytes.Buffer, title string, names []string, lines []line) {
	lo, hi := decades(lines)
	x := func(i int) float64 {
		return leftMargin + (float64(i)+0.5)*(plotWidth-leftMargin-rightMargin)/float64(len(names))
	}
	bottom := float64(panelHeight - underMargin)
	y := func(v float64) float64 {
		return bottom - (math.Log10(v)-float64(lo))/float64(hi-lo)*(bottom-topMargin)
	}
	text := func(x, y float64, attrs, s string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s" %s>%s</text>`+"\n", x, y, ink, attrs, html.EscapeString(s))
	}
	text(leftMargin, topMargin-16, `font-size="13" font-weight="bold"`, title)

	const right = plotWidth - rightMargin
	for d := lo; d <= hi; d++ {
		at := y(math.Pow10(d))
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-opacity="0.3"/>`+"\n", leftMargin, right, at, at, ink)
		text(leftMargin-8, at+4, `text-anchor="end"`, fmt.Sprintf("1e%d", d))
	}
	fmt.Fprintf(b, `<path d="M%d %dV%.1fH%d" fill="none" stroke="%s"/>`+"\n", leftMargin, topMargin, bottom, right, ink)
	middle := (topMargin + bottom) / 2
	text(16, middle, fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 16 %.1f)"`, middle), "|got − want|, log scale")
	for i, n := range names {
		text(x(i), bottom+14, fmt.Sprintf(`text-anchor="end" transform="rotate(-40 %.1f %.1f)"`, x(i), bottom+14), n)
	}

	for i, l := range lines {
		style := fmt.Sprintf(`stroke="%s" stroke-width="1.8" stroke-dasharray="%s" fill="none"`, l.colour, l.dash)
		var path strings.Builder
		up := true // the pen
		for j, v := range l.y {
			if !plotted(v) {
				up = true
				continue
			}
			command := 'L'
			if up {
				command, up = 'M', false
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", command, x(j), y(v))
			if l.colour != ink {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n", x(j), y(v), l.colour)
			}
		}
		fmt.Fprintf(b, `<path d="%s" %s/>`+"\n", path.String(), style)
		at := float64(topMargin + 8 + 18*i)
		fmt.Fprintf(b, `<path d="M%d %.1fh24" %s/>`+"\n", right+12, at, style)
		text(right+42, at+4, "", l.name)
	}
}

// decades are the powers of ten below and above all values.
func decades(lines []line) (lo, hi int) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for _, v := range l.y {
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
