package storecmd

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/store"
)

// GC removes what no model of the store needs.
func GC() *cli.Command {
	return &cli.Command{
		Name:      "gc",
		Usage:     "remove what no model of the store needs",
		UsageText: "inkling-run gc [--dry-run] [--partial TIME]",
		Description: "Removes files of the store that no model has, and what killed commands and broken\npulls have left. What a running command works on stays.\n\n" +
			"Exit status: 0 done, 1 an error, 2 wrong usage.",
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be removed, remove nothing"},
			&cli.DurationFlag{Name: "partial", Value: 24 * time.Hour, Usage: "give up pulls that were left alone for `TIME`; before that a pull goes on with them", DefaultText: "24h"},
		},
		OnUsageError: usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 0 {
				return usage.Errorf("%d arguments, want none", c.NArg())
			}
			if d := c.Duration("partial"); d < 0 {
				return usage.Errorf("--partial %v: want 0 or more", d)
			}
			return interrupt.Run(c.Context, func(ctx context.Context) error { return runGC(ctx, c) })
		},
	}
}

func runGC(ctx context.Context, c *cli.Context) error {
	s, err := store.Open("")
	if err != nil {
		return err
	}
	removed, err := s.GC(ctx, store.GCOptions{DryRun: c.Bool("dry-run"), Partial: c.Duration("partial")})
	var total int64
	for _, r := range removed {
		fmt.Fprintf(c.App.Writer, "%s  %s\n", r.Path, report.ByteSize(r.Bytes))
		total += r.Bytes
	}
	if err != nil {
		return err
	}
	did := "removed"
	if c.Bool("dry-run") {
		did = "would remove"
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s %s\n", did, report.ByteSize(total))
	return err
}
