package eval

import (
	"io"
	"strconv"

	"github.com/inkling-go/inkling/internal/plot"
)

// WriteSVG draws the divergence below which each share of the tokens is.
func (d *Distance) WriteSVG(w io.Writer, title string) error {
	return plot.WriteSVG(w, title, d.panels(title))
}

// WritePNG is WriteSVG as PNG.
func (d *Distance) WritePNG(w io.Writer, title string) error {
	return plot.WritePNG(w, d.panels(title))
}

func (d *Distance) panels(title string) []plot.Panel {
	p := plot.Panel{Title: title, YLabel: "KL in nats, log scale"}
	percentile := plot.Line{Name: "KL at percentile", Colour: plot.Colour(0)}
	mean := plot.Line{Name: "mean " + strconv.FormatFloat(d.Mean, 'g', 3, 64), Colour: plot.Colour(1), Dash: "5 4"}
	for _, q := range d.Percentiles {
		p.Places = append(p.Places, strconv.FormatFloat(q.P, 'f', -1, 64)+" %")
		percentile.Y = append(percentile.Y, q.KL)
		mean.Y = append(mean.Y, d.Mean)
	}
	p.Lines = []plot.Line{percentile, mean}
	return []plot.Panel{p}
}
