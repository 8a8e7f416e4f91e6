package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/safetensors"
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
		&cli.StringFlag{Name: "recipe", Usage: "types by name from `FILE`, lines PATTERN = TYPE, the first that matches; in place of --outtype"},
		&cli.BoolFlag{Name: "print-recipe", Usage: "print the recipe of the output type for this checkpoint, write nothing"},
		&cli.StringFlag{Name: "imatrix", Usage: "importance matrix `FILE` of llama-imatrix, GGUF or .dat"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the model, in file names too (default: the folder's)"},
		&cli.StringFlag{Name: "only", Usage: "write only the file of one `KIND`: text, mmproj, mtp"},
		&cli.BoolFlag{Name: "no-mtp", Usage: "leave out the layers for multi-token prediction, which may then be missing"},
		&cli.StringFlag{Name: "split-max-size", Usage: "split models into files of at most `SIZE` of weights, such as 40G"},
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be written, write nothing"},
		&cli.BoolFlag{Name: "force", Usage: "replace existing outputs"},
		&cli.BoolFlag{Name: "resume", Usage: "go on with a conversion that was interrupted or killed"},
		&cli.BoolFlag{Name: "verify", Usage: "compare the outputs with the checkpoint; those that are there are not written again"},
		&cli.BoolFlag{Name: "allow-nan", Usage: "convert weights that are NaN or infinite as they are"},
		&cli.IntFlag{Name: "jobs", Usage: "convert on `N` cores (default: all)"},
	}
}

func newApp(stdout, stderr io.Writer) *cli.App {
	usage := func(_ *cli.Context, err error, _ bool) error { return &usageError{err} }
	return &cli.App{
		Name:            "convert-inkling",
		Usage:           "convert a checkpoint to GGUF",
		ArgsUsage:       "SRC_DIR",
		UsageText:       "convert-inkling SRC_DIR [-o DIR] [--outtype TYPE] [options]\nconvert-inkling synth CONFIG.json [-o DIR] [--outtype TYPE] [--seed N] [--layers N] [--memory]",
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Flags:           flags(),
		OnUsageError:    usage,
		ExitErrHandler:  func(*cli.Context, error) {}, // run does it
		Action:          action,
		Commands: []*cli.Command{{
			Name: "synth", Usage: "write a model of a published shape with drawn weights",
			ArgsUsage: "CONFIG.json", HideHelpCommand: true,
			Flags: synthFlags(), OnUsageError: usage, Action: synth,
		}, {
			Name: "man", Usage: "print the manual page", Hidden: true, HideHelpCommand: true,
			OnUsageError: usage, Action: man,
		}},
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
	if report.Verified != nil {
		err = errors.Join(err, writeVerified(report))
	}
	if err != nil {
		return err
	}
	if c.Bool("print-recipe") {
		fmt.Fprint(c.App.Writer, report.Recipe)
		return nil
	}
	for _, note := range report.Notes {
		fmt.Fprintf(c.App.ErrWriter, "note: %s\n", note)
	}
	printReport(c.App.Writer, report, o.DryRun)
	return nil
}

// man prints the manual page.
func man(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef("man takes no arguments; a checkpoint in a folder of that name is ./man")
	}
	page, err := c.App.ToManWithSection(1)
	if err == nil {
		_, err = io.WriteString(c.App.Writer, page)
	}
	return err
}

// options turns the command line into options.
func options(c *cli.Context) (convert.Options, error) {
	if c.NArg() != 1 {
		return convert.Options{}, usagef("%d folders, want one checkpoint", c.NArg())
	}
	o, err := outputOptions(c)
	if err != nil {
		return o, err
	}
	if o.Dir = c.Args().First(); o.Dir == "" {
		return o, usagef("the folder's name is empty")
	}
	if strings.Contains(o.Dir, "://") {
		return o, usagef("%s is a URL, want a folder: download the checkpoint, then convert it", o.Dir)
	}
	o.DryRun = c.Bool("dry-run") || c.Bool("print-recipe")
	o.AllowNaN, o.Verify, o.NoMTP = c.Bool("allow-nan"), c.Bool("verify"), c.Bool("no-mtp")
	o.Keep, o.Resume = true, c.Bool("resume")
	if only := convert.Kind(c.String("only")); only != "" {
		if !slices.Contains([]convert.Kind{convert.Text, convert.MMProj, convert.MTP}, only) {
			return o, usagef("--only %s: want text, mmproj or mtp", only)
		}
		o.Only = []convert.Kind{only}
		o.NoMTP = o.NoMTP || only != convert.MTP
	}
	if path := c.String("recipe"); path != "" {
		if c.IsSet("outtype") {
			return o, usagef("--recipe and --outtype: want one of them")
		}
		if o.Recipe, err = convert.ReadRecipe(path); err != nil {
			return o, fmt.Errorf("--recipe: %w", err)
		}
	}
	if path := c.String("imatrix"); path != "" {
		if o.Imatrix, err = convert.ReadImatrix(path); err != nil {
			return o, fmt.Errorf("--imatrix: %w", err)
		}
	}
	return o, nil
}

// maxJobs bounds --jobs: each has buffers of its own.
const maxJobs = 1024

// outputOptions reads the options that the two commands share.
func outputOptions(c *cli.Context) (convert.Options, error) {
	o := convert.Options{OutDir: c.String("output"), Name: c.String("name"), Force: c.Bool("force"), Workers: c.Int("jobs")}
	var err error
	if o.OutType, err = convert.ParseOutType(c.String("outtype")); err != nil {
		return o, usagef("--outtype: %w", err)
	}
	if c.IsSet("name") {
		if err := convert.CheckName(o.Name); err != nil {
			return o, usagef("--name: %w", err)
		}
	}
	switch {
	case c.IsSet("output") && o.OutDir == "":
		return o, usagef("--output: the folder's name is empty")
	case strings.Contains(o.OutDir, "://"):
		return o, usagef("--output %s: a URL, want a folder", o.OutDir)
	case strings.HasSuffix(o.OutDir, ".gguf"):
		return o, usagef("--output %s: want a folder; --name sets the names of the files", o.OutDir)
	case c.IsSet("jobs") && (o.Workers < 1 || o.Workers > maxJobs):
		return o, usagef("--jobs %d: want 1 to %d", o.Workers, maxJobs)
	}
	for _, name := range []string{"recipe", "imatrix", "only", "split-max-size"} {
		if c.IsSet(name) && c.String(name) == "" {
			return o, usagef("--%s: the value is empty", name)
		}
	}
	if s := c.String("split-max-size"); s != "" {
		if o.SplitMax, err = parseSize(s); err != nil {
			return o, usagef("--split-max-size: %w", err)
		}
	}
	return o, nil
}

// parseSize reads a number of bytes with a unit of thousands, such as 40G.
func parseSize(s string) (int64, error) {
	digits, unit := s, float64(1)
	for i, u := range "KMGT" {
		if rest, ok := strings.CutSuffix(strings.ToUpper(s), string(u)); ok {
			digits, unit = rest, math.Pow(1000, float64(i+1))
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n*unit >= 1e6 && n*unit <= 1e15) {
		return 0, fmt.Errorf("%q, want a size from 1M on, such as 40G", s)
	}
	return int64(n * unit), nil
}

// hint adds to an error which option is about it.
func hint(err error) string {
	var nan *convert.NonFiniteError
	var beyond *convert.RangeError
	var path *fs.PathError
	var space *convert.SpaceError
	var shard *safetensors.MissingShardError
	switch {
	case errors.As(err, &shard) && strings.Contains(shard.Tensors[0], "mtp."):
		return " (--no-mtp does without)"
	case errors.Is(err, convert.ErrOtherRun):
		return " (without --resume it begins again)"
	case errors.As(err, &space) && space.Err != nil:
		return " (make room and go on with --resume)"
	case errors.As(err, &space):
		return " (-o DIR writes elsewhere)"
	case errors.Is(err, fs.ErrExist):
		return " (--force replaces it, --only text|mmproj|mtp leaves it alone)"
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
	list, opts := flags(), slices.Clone(args[:1])
	if len(args) > 1 && args[1] == "synth" {
		list, opts, args = synthFlags(), slices.Clone(args[:2]), args[1:]
	}
	for _, f := range list {
		if _, isBool := f.(*cli.BoolFlag); !isBool {
			for _, name := range f.Names() {
				takesValue[name] = true
			}
		}
	}
	var rest []string
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
