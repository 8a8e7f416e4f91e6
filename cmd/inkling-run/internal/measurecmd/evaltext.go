package measurecmd

import (
	"fmt"
	"io"
	"strconv"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/internal/eval"
)

// printEval writes what was measured for people.
func printEval(w io.Writer, r *evalResult) error {
	p := &report.Printer{W: w}
	if a := r.Accuracy; a != nil {
		printAccuracy(p, a)
	}
	if r.Perplexity != nil {
		p.Table("prediction", func(row func(...string)) { row("perplexity", perplexityText(*r.Perplexity)) })
	}
	if d := r.Distance; d != nil {
		p.Table("against "+report.Printable(r.Against), func(row func(...string)) {
			row("perplexity", perplexityText(d.Model))
			row("reference's", perplexityText(d.Reference))
			row("mean KL", fmt.Sprintf("%.6f ± %.6f", d.Mean, d.Error))
			for _, q := range d.Percentiles {
				row("KL "+strconv.FormatFloat(q.P, 'f', -1, 64)+" %", fmt.Sprintf("%.6f", q.KL))
			}
			row("same top token", fmt.Sprintf("%.2f %%", 100*d.Top1))
			row("RMS of Δp", fmt.Sprintf("%.3f %%", 100*d.DeltaP))
		})
	}
	return p.Err
}

func printAccuracy(p *report.Printer, a *eval.Accuracy) {
	p.Table("questions", func(row func(...string)) {
		count := func(name string, right, n int, more string) {
			share := 0.0
			if n > 0 {
				share = 100 * float64(right) / float64(n)
			}
			row(report.Printable(name), fmt.Sprintf("%d of %d", right, n), fmt.Sprintf("%.1f %%%s", share, more))
		}
		for _, t := range a.Tasks {
			count(t.Name, t.Right, t.Count, "")
		}
		count("all", a.Right, a.Count, fmt.Sprintf(" ± %.1f", 100*a.Error))
		if a.Skipped > 0 {
			row("skipped", strconv.Itoa(a.Skipped), "no projector for their media")
		}
	})
	if len(a.Wrong) == 0 {
		return
	}
	p.Table("wrong", func(row func(...string)) {
		for _, w := range a.Wrong[:min(len(a.Wrong), report.MaxElems)] {
			row(report.Printable(w.ID), "want "+report.ShortScalar(w.Want), "got "+report.ShortScalar(w.Got))
		}
		if more := len(a.Wrong) - report.MaxElems; more > 0 {
			row(fmt.Sprintf("and %d more, which --json lists", more))
		}
	})
}

func perplexityText(p eval.Perplexity) string {
	return fmt.Sprintf("%.4f ± %.4f over %d tokens in %d windows", p.Value, p.Error, p.Tokens, p.Windows)
}
