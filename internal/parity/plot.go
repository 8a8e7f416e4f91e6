package parity

import (
	"io"
	"math"
	"strings"

	"github.com/inkling-go/inkling/internal/plot"
)

// WritePlot draws the error of each layer's output as SVG, one panel for each
// model.
func (r *Report) WritePlot(w io.Writer) error {
	models := r.tapped()
	const title = "Error of each layer against the reference"
	var panels []plot.Panel
	for _, m := range models {
		names, lines := m.lines()
		panels = append(panels, plot.Panel{Title: title + ": " + m.name + " on " + m.device, YLabel: "|got − want|, log scale", Places: names, Lines: lines})
	}
	return plot.WriteSVG(w, title, panels)
}

// lines are the largest and the mean errors of each run, and the fixed part of
// the first run's tolerance, over the outputs of layers and the logits.
func (m *tapped) lines() (names []string, lines []plot.Line) {
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
		colour := plot.Colour(i)
		lines = append(lines,
			plot.Line{Name: run.name + ", max", Colour: colour, Y: values(run, func(c Comparison) float64 { return float64(c.Max) })},
			plot.Line{Name: run.name + ", mean", Colour: colour, Dash: "5 4", Y: values(run, func(c Comparison) float64 { return float64(c.Mean) })})
	}
	if len(m.runs) > 0 {
		lines = append(lines, plot.Line{
			Name: m.runs[0].name + ", tolerance", Colour: plot.Ink, Dash: "1 3",
			Y: values(m.runs[0], func(c Comparison) float64 { return c.Tolerance.Abs }),
		})
	}
	return names, lines
}
