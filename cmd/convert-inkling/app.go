package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/convert"
)

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// outTypes lists the output types for people.
func outTypes() string {
	var names []string
	for _, o := range convert.OutTypes() {
		names = append(names, string(o))
	}
	return strings.Join(names, ", ")
}

// flags returns the options of the command.
func flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "output", Aliases: []string{"o"}, Usage: "write to folder `DIR`, created if needed (default: the checkpoint's)",
		},
		&cli.StringFlag{Name: "outtype", Value: string(convert.OutAuto), Usage: "`TYPE` of the weights: " + outTypes() + "; auto keeps them as they came"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the model, in file names too (default: the folder's)"},
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be written, write nothing"},
		&cli.BoolFlag{Name: "force", Usage: "replace existing outputs"},
		&cli.BoolFlag{Name: "allow-nan", Usage: "convert weights that are NaN or infinite as they are"},
		&cli.IntFlag{Name: "jobs", Usage: "convert on `N` cores (default: all)"},
	}
}

func newApp(stdout, stderr io.Writer) *cli.App {
	return &cli.App{
		Name:            "convert-inkling",
		Usage:           "convert a checkpoint to GGUF",
		ArgsUsage:       "SRC_DIR",
		UsageText:       "convert-inkling SRC_DIR [-o DIR] [--outtype TYPE] [options]",
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Flags:           flags(),
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return &usageError{err}
		},
		ExitErrHandler: func(*cli.Context, error) {}, // run does it
		Action:         action,
	}
}

// action runs the command.
func action(c *cli.Context) error {
	o, err := options(c)
	if err != nil {
		return err
	}
	bar, done := progress(c.App.ErrWriter)
	o.Progress = bar
	report, err := convert.Run(c.Context, o)
	done(err)
	if err != nil {
		return err
	}
	for _, note := range report.Notes {
		fmt.Fprintf(c.App.ErrWriter, "note: %s\n", note)
	}
	printReport(c.App.Writer, report, o.DryRun)
	return nil
}

// options turns the command line into options.
func options(c *cli.Context) (convert.Options, error) {
	if c.NArg() != 1 {
		return convert.Options{}, usagef("%d folders, want one checkpoint", c.NArg())
	}
	out, err := convert.ParseOutType(c.String("outtype"))
	if err != nil {
		return convert.Options{}, usagef("--outtype: %w", err)
	}
	if c.IsSet("name") {
		if err := convert.CheckName(c.String("name")); err != nil {
			return convert.Options{}, usagef("--name: %w", err)
		}
	}
	if dir := c.String("output"); strings.HasSuffix(dir, ".gguf") {
		return convert.Options{}, usagef("--output %s: want a folder; --name sets the names of the files", dir)
	}
	if c.Int("jobs") < 0 {
		return convert.Options{}, usagef("--jobs %d: want at least 1", c.Int("jobs"))
	}
	return convert.Options{
		Dir:      c.Args().First(),
		OutDir:   c.String("output"),
		Name:     c.String("name"),
		OutType:  out,
		DryRun:   c.Bool("dry-run"),
		Force:    c.Bool("force"),
		AllowNaN: c.Bool("allow-nan"),
		Workers:  c.Int("jobs"),
	}, nil
}

// hint adds to an error which option is about it.
func hint(err error) string {
	var nan *convert.NonFiniteError
	var beyond *convert.RangeError
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrExist):
		return " (--force replaces it)"
	case errors.As(err, &nan):
		return " (--allow-nan converts them as they are)"
	case errors.As(err, &beyond):
		return " (--outtype bf16 or f32 holds them)"
	case errors.As(err, &path) && strings.HasSuffix(path.Path, ".gguf.partial"):
		return " (-o DIR writes elsewhere)"
	}
	return ""
}

// interspersed moves options before the folder: the flag package that the cli
// package is built on stops at the first argument that is none.
func interspersed(args []string) []string {
	takesValue := make(map[string]bool)
	for _, f := range flags() {
		if _, isBool := f.(*cli.BoolFlag); !isBool {
			for _, name := range f.Names() {
				takesValue[name] = true
			}
		}
	}
	opts, rest := slices.Clone(args[:1]), []string(nil)
	for args = args[1:]; len(args) > 0; args = args[1:] {
		a := args[0]
		if a == "--" {
			rest = append(rest, args[1:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			rest = append(rest, a)
			continue
		}
		opts = append(opts, a)
		if takesValue[strings.TrimLeft(a, "-")] && len(args) > 1 {
			args = args[1:]
			opts = append(opts, args[0])
		}
	}
	return append(append(opts, "--"), rest...)
}
