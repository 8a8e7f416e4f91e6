// Command report writes docs/parity.md and its plot from the comparisons that
// tests recorded. make parity runs it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/inkling-go/inkling/internal/parity"
)

func main() {
	commit := flag.String("commit", "", "short hash of the commit")
	date := flag.String("date", "", "today, YYYY-MM-DD")
	out := flag.String("o", "docs/parity.md", "the report; its plot gets the same name with .svg")
	flag.Parse()
	if err := run(*commit, *date, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// run reads the recorded files in their order.
func run(commit, date, out string, files []string) error {
	r := parity.Report{Commit: commit, Date: date}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		cs, err := parity.Read(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.Comparisons = append(r.Comparisons, cs...)
	}
	if len(r.Comparisons) == 0 {
		return fmt.Errorf("no comparisons in %q", files)
	}
	plot := out[:len(out)-len(filepath.Ext(out))] + ".svg"
	r.Plot = filepath.Base(plot)
	if err := write(out, r.Markdown); err != nil {
		return err
	}
	return write(plot, r.WritePlot)
}

func write(path string, to func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = to(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
