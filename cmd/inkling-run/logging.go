package main

import (
	"log/slog"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
)

// addLogFlags gives a command the options about log lines, unless it has options
// of these names, and sets them before it runs. What -v means besides, the
// command says.
func addLogFlags(c *cli.Command) {
	has := func(name string) bool {
		return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	}
	if !has("verbose") {
		c.Flags = append(c.Flags, &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "write log lines of less importance as well"})
	}
	if !has("log-format") {
		c.Flags = append(c.Flags, &cli.StringFlag{Name: "log-format", Value: "text", Usage: "write log lines to standard error as `FORMAT` text or json"})
	}
	before := c.Before
	c.Before = func(ctx *cli.Context) error {
		if err := setLogging(ctx); err != nil {
			return err
		}
		if before != nil {
			return before(ctx)
		}
		return nil
	}
}

// setLogging makes the logger of the program, of ggml's messages too.
func setLogging(c *cli.Context) error {
	format, verbose := c.String("log-format"), c.Bool("verbose")
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewTextHandler(c.App.ErrWriter, opts)
	switch format {
	case "text":
	case "json":
		handler = slog.NewJSONHandler(c.App.ErrWriter, opts)
	default:
		return usage.Errorf("--log-format %q: want text or json", format)
	}
	slog.SetDefault(slog.New(handler))
	binding.LogLevel(level)
	return nil
}
