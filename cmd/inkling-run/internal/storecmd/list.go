package storecmd

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/store"
)

// List lists the models of the store.
func List() *cli.Command {
	return &cli.Command{
		Name:            "list",
		Aliases:         []string{"ls"},
		Usage:           "list the models of the store",
		UsageText:       "inkling-run list [--json]",
		Description:     "Lists the models of the store, the newest first. Models with the same ID have the\nsame files and settings.\n\nExit status: 0 done, 1 an error, 2 wrong usage.",
		HideHelpCommand: true,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print a JSON list"}},
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 0 {
				return usage.Errorf("%d arguments, want none", c.NArg())
			}
			s, err := store.Open("")
			if err != nil {
				return err
			}
			models, damaged := s.List() // the sound ones are listed all the same
			if c.Bool("json") {
				err = report.JSON(c.App.Writer, listed(models))
			} else {
				err = printList(c.App.Writer, models, time.Now())
			}
			return cmp.Or(err, damaged)
		},
	}
}

// listedModel is a model in the form of --json.
type listedModel struct {
	Name     string        `json:"name"`
	Digest   string        `json:"digest"`
	Size     int64         `json:"size"`
	Modified time.Time     `json:"modified_at"`
	Source   string        `json:"source,omitempty"`
	Details  store.Details `json:"details"`
}

func listed(models []*store.Model) []listedModel {
	list := []listedModel{} // an empty list, not null
	for _, m := range models {
		list = append(list, listedModel{m.Name, m.Digest, m.Size, m.Modified, m.Source, m.Details})
	}
	return list
}

func printList(w io.Writer, models []*store.Model, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tID\tSIZE\tMODIFIED")
	for _, m := range models {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", m.Name, m.ID(), report.ByteSize(m.Size), ago(now.Sub(m.Modified)))
	}
	return t.Flush()
}

// ago writes a time that has gone by, in the largest unit that it has two of.
func ago(d time.Duration) string {
	for _, u := range []struct {
		name string
		unit time.Duration
	}{
		{"years", 365 * 24 * time.Hour},
		{"months", 30 * 24 * time.Hour},
		{"weeks", 7 * 24 * time.Hour},
		{"days", 24 * time.Hour},
		{"hours", time.Hour},
		{"minutes", time.Minute},
		{"seconds", time.Second},
	} {
		if n := d / u.unit; n >= 2 {
			return fmt.Sprintf("%d %s ago", n, u.name)
		}
	}
	return "just now"
}
