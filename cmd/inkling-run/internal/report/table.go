// Package report prints results: tables and sizes for people, JSON for programs.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Printer writes tables for people. The first error sticks.
type Printer struct {
	W   io.Writer
	Err error // the first one; nothing is written behind it
}

// Table writes rows in columns under a heading.
func (p *Printer) Table(heading string, rows func(row func(cells ...string))) {
	if p.Err != nil {
		return
	}
	if heading != "" {
		_, p.Err = fmt.Fprintf(p.W, "%s\n", heading)
	}
	t := tabwriter.NewWriter(p.W, 0, 0, 2, ' ', 0)
	rows(func(cells ...string) {
		fmt.Fprintf(t, "  %s\n", strings.Join(cells, "\t"))
	})
	p.Err = cmp.Or(p.Err, t.Flush())
}

// JSON writes a value as one line that keeps <, > and & readable.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
