package servecmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/urfave/cli/v2"
)

// Ps lists the models that a server has in memory.
func Ps() *cli.Command {
	return &cli.Command{
		Name:      "ps",
		Usage:     "list the models that a running server has in memory",
		UsageText: "inkling-run ps [--json]",
		Description: "Asks the server at INKLING_HOST, or else OLLAMA_HOST, or 127.0.0.1:11434, which models\nit has in memory and until when. INKLING_API_KEY is the key for it.\n\n" +
			"Exit status: 0 done, 1 an error, 2 wrong usage.",
		HideHelpCommand: true,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print a JSON list"}},
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 0 {
				return usage.Errorf("%d arguments, want none", c.NArg())
			}
			s, err := newServerClient()
			if err != nil {
				return err
			}
			return interrupt.Run(c.Context, func(ctx context.Context) error {
				models, err := s.loaded(ctx)
				if err != nil {
					return err
				}
				if c.Bool("json") {
					return report.JSON(c.App.Writer, append([]loadedModel{}, models...))
				}
				return printLoaded(c.App.Writer, models, time.Now())
			})
		},
	}
}

func printLoaded(w io.Writer, models []loadedModel, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tID\tSIZE\tPROCESSOR\tUNTIL")
	for _, m := range models {
		id := strings.TrimPrefix(m.Digest, "sha256:")
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", report.Printable(m.Name), id[:min(len(id), 12)], report.ByteSize(m.Size), processor(m), until(m.Expires.Sub(now)))
	}
	return t.Flush()
}

// processor says where the weights are.
func processor(m loadedModel) string {
	if m.SizeVRAM <= 0 || m.Size <= 0 {
		return "CPU"
	}
	gpu := min(100, 100*m.SizeVRAM/m.Size)
	if gpu == 100 {
		return "GPU"
	}
	return fmt.Sprintf("%d%% CPU, %d%% GPU", 100-gpu, gpu)
}

// forEver is beyond any time that a server is told to keep a model.
const forEver = 10 * 365 * 24 * time.Hour

// until writes a time to come.
func until(d time.Duration) string {
	switch {
	case d > forEver:
		return "for ever"
	case d <= 0:
		return "now"
	}
	return "in " + d.Round(time.Second).String()
}
