package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/shapes"
)

// synthFlags returns the options of convert-inkling synth.
func synthFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to folder `DIR`, created if needed (default: here)"},
		&cli.StringFlag{Name: "outtype", Value: string(convert.OutBF16), Usage: "`TYPE` of the weights: " + outTypes()},
		&cli.Uint64Flag{Name: "seed", Usage: "`N` that the weights are drawn from"},
		&cli.IntFlag{Name: "layers", Usage: "`N` layers at most (default: those of the config)"},
		&cli.BoolFlag{Name: "memory", Usage: "say how large the files are, write nothing"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the model, in file names too (default: the config's)"},
		&cli.StringFlag{Name: "split-max-size", Usage: "split models into files of at most `SIZE` of weights, such as 40G"},
		&cli.BoolFlag{Name: "force", Usage: "replace existing outputs"},
		&cli.IntFlag{Name: "jobs", Usage: "work on `N` cores (default: all)"},
	}
}

// synth runs convert-inkling synth.
func synth(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef("%d configs, want one: a file, or one of %v", c.NArg(), shapes.Names())
	}
	o, err := outputOptions(c)
	if err != nil {
		return err
	}
	if c.Int("layers") < 0 {
		return usagef("--layers %d: want at least 1", c.Int("layers"))
	}
	o.DryRun = c.Bool("memory")
	bar, done := progress(c.App.ErrWriter)
	o.Progress = bar
	report, err := convert.Synth(c.Context, convert.SynthOptions{
		Config: c.Args().First(), Seed: c.Uint64("seed"), Layers: c.Int("layers"), Options: o,
	})
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
