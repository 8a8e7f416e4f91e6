package measurecmd

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/inkling-go/inkling/internal/bench"
	"github.com/inkling-go/inkling/internal/plot"
)

// throughput draws the speed of answers over the sequences at once, a panel for each
// model and a line for each depth.
func throughput(r *benchReport) []plot.Panel {
	var panels []plot.Panel
	for _, m := range r.Models {
		p := plot.Panel{Title: fmt.Sprintf("%s, %d threads, by sequences at once", m.Name, r.Threads), YLabel: "tokens a second, log scale", Values: true}
		at := map[int]int{} // where a number of sequences stands
		for _, n := range sequencesOf(m.Results) {
			at[n] = len(p.Places)
			p.Places = append(p.Places, strconv.Itoa(n))
		}
		lines := map[int]int{} // of a depth
		for _, res := range m.Results {
			if res.Generate == 0 || res.Draft > 0 {
				continue
			}
			i, ok := lines[res.Depth]
			if !ok {
				i = len(p.Lines)
				lines[res.Depth] = i
				p.Lines = append(p.Lines, plot.Line{Name: fmt.Sprintf("depth %d", res.Depth), Colour: plot.Colour(i), Y: blank(len(p.Places))})
			}
			p.Lines[i].Y[at[res.Parallel]] = res.Mean
		}
		panels = append(panels, p)
	}
	return panels
}

// sequencesOf are the numbers of sequences of answers, ascending.
func sequencesOf(results []bench.Result) []int {
	var ns []int
	for _, res := range results {
		if res.Generate > 0 {
			ns = append(ns, res.Parallel)
		}
	}
	slices.Sort(ns)
	return slices.Compact(ns)
}

// blank is n values that are not drawn.
func blank(n int) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = math.NaN()
	}
	return y
}

// writeThroughput draws it into an SVG file.
func writeThroughput(path string, r *benchReport) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(plot.WriteSVG(f, "tokens a second by sequences at once", throughput(r)), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
