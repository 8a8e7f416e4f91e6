package main

import (
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/buildinfo"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/urfave/cli/v2"
)

// versionCommand says what the program is made of.
func versionCommand() *cli.Command {
	return &cli.Command{
		Name:            "version",
		Usage:           "print the version of the program, of Go and of ggml",
		UsageText:       "inkling-run version [--json]",
		HideHelpCommand: true,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usage.Errorf("version takes no arguments")
			}
			b := buildinfo.Read()
			if c.Bool("json") {
				return report.JSON(c.App.Writer, b)
			}
			_, err := fmt.Fprintf(c.App.Writer, "%s\nplatform %s, SIMD %s\n", buildinfo.Line(), b.Platform, strings.Join(b.SIMD, " "))
			return err
		},
	}
}
