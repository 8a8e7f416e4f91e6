package inspectcmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/describe"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/urfave/cli/v2"
)

// printStored prints what the store has about a model, if it has it.
func printStored(p *report.Printer, m *describe.StoredInfo) {
	if m == nil {
		return
	}
	p.Table("in the store", func(row func(...string)) {
		row("name", m.Name)
		row("digest", m.Digest)
		row("modified", m.Modified.Format(time.RFC3339))
		for _, r := range []struct{ name, value string }{
			{"from", report.Printable(m.Source)},
			{"mtp", report.Printable(m.MTP)},
			{"system", quotedShort(m.System)},
			{"template", quotedShort(m.Template)},
			{"license", quotedShort(strings.Join(m.License, "\n"))},
		} {
			if r.value != "" {
				row(r.name, r.value)
			}
		}
		if n := len(m.Messages); n > 0 {
			row("messages", fmt.Sprint(n))
		}
		m.Params.Each(func(name, text string) { row(name, report.Printable(text)) })
	})
}

// quotedShort is the beginning of a text, and nothing of none.
func quotedShort(s string) string {
	if s == "" {
		return ""
	}
	return report.ShortScalar(s)
}

func showModelfile(c *cli.Context, m *locate.Model) error {
	if m.Stored == nil {
		return fmt.Errorf("%s: only models of the store have a Modelfile", m.Path)
	}
	text, err := m.Stored.Modelfile()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.App.Writer, text)
	return err
}
