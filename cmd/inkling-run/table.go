package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// filePrinter writes tables for people. The first error
// sticks.
type filePrinter struct {
	w   io.Writer
	err error
}

// table writes rows in columns under a heading.
func (p *filePrinter) table(heading string, rows func(row func(cells ...string))) {
	if p.err != nil {
		return
	}
	if heading != "" {
		_, p.err = fmt.Fprintf(p.w, "%s\n", heading)
	}
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	rows(func(cells ...string) {
		fmt.Fprintf(t, "  %s\n", strings.Join(cells, "\t"))
	})
	p.err = cmp.Or(p.err, t.Flush())
}

// encodeJSON writes a value as one line that keeps <, > and & readable.
func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
