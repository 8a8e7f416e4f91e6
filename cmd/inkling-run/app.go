package main

import (
	"fmt"
	"io"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/buildinfo"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/urfave/cli/v2"
)

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	return &cli.App{
		Name:      "inkling-run",
		Usage:     "run Inkling models",
		UsageText: "inkling-run COMMAND [arguments and options, in any order]",
		Description: "inkling-run COMMAND --help lists the options of a command.\n\n" +
			"Exit status: 0 done, 1 an error, 2 wrong usage, 130 interrupted.\n" +
			"An error is one line on standard error.",
		HideHelpCommand: true,
		HideVersion:     true, // the package's own flag would take -v
		Reader:          stdin,
		Writer:          stdout,
		ErrWriter:       stderr,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "version", Usage: "print the version"}},
		Commands:        commands(),
		// A comma in the name of a picture is no separator.
		DisableSliceFlagSeparator: true,
		OnUsageError:              usage.OnError,
		ExitErrHandler:            func(*cli.Context, error) {}, // run does it
		Action: func(c *cli.Context) error {
			switch {
			case c.Bool("version"):
				fmt.Fprintln(c.App.Writer, buildinfo.Line())
				return nil
			case c.NArg() > 0:
				return unknownCommand(c.Args().First(), c.App.Commands)
			}
			return usage.Errorf("no command; inkling-run --help lists them")
		},
	}
}
