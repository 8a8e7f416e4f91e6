package storecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/progress"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/store"
)

const importDescription = `Converts a checkpoint, the folder that a repository of the Hugging Face Hub with
safetensors files is, and puts the result into the store: the text model, its
projector and its layers for multi-token prediction. Without NAME the model is
called like the folder. convert-inkling has more settings for the conversion;
create takes what it writes.

Exit status: 0 done, 1 an error, 2 wrong usage, 130 interrupted.`

// Import converts a checkpoint into the store.
func Import() *cli.Command {
	var types []string
	for _, t := range convert.OutTypes() {
		types = append(types, string(t))
	}
	return &cli.Command{
		Name:            "import",
		Usage:           "convert a checkpoint into the store",
		UsageText:       "inkling-run import DIR [NAME] [--outtype TYPE]",
		Description:     importDescription,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "outtype", Value: string(convert.OutAuto), Usage: "`TYPE` of the weights: " + strings.Join(types, ", ") + "; auto keeps them as they came"},
			&cli.BoolFlag{Name: "no-mtp", Usage: "leave out the layers for multi-token prediction, which may then be missing"},
		},
		OnUsageError: usage.OnError,
		Action: func(c *cli.Context) error {
			o, name, err := importOptions(c)
			if err != nil {
				return err
			}
			return interrupt.RunOrLeave(c.Context, func(ctx context.Context) error { return runImport(ctx, c, o, name) })
		},
	}
}

// importOptions checks the command line.
func importOptions(c *cli.Context) (o convert.Options, name string, err error) {
	if n := c.NArg(); n < 1 || n > 2 {
		return o, "", usage.Errorf("%d arguments, want the folder of a checkpoint and perhaps a name", n)
	}
	o.Dir, o.NoMTP = c.Args().First(), c.Bool("no-mtp")
	if o.OutType, err = convert.ParseOutType(c.String("outtype")); err != nil {
		return o, "", usage.Errorf("--outtype: %w", err)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, "", err
	}
	name = cmp.Or(c.Args().Get(1), filepath.Base(dir))
	n, err := store.ParseName(name)
	if err != nil && c.NArg() == 1 {
		return o, "", usage.Errorf("a name for the model is needed, as the folder's is none: %w", err)
	}
	if err != nil {
		return o, "", &usage.Error{Err: err}
	}
	o.Name = n.Repo
	return o, name, locate.NotCheckpoint(o.Dir)
}

func runImport(ctx context.Context, c *cli.Context, o convert.Options, name string) (err error) {
	s, err := store.Open("")
	if err != nil {
		return err
	}
	w, err := s.NewWork(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	o.OutDir = w.Dir
	show, done := progress.Conversion(c.App.ErrWriter, fmt.Sprintf("note: converting %s", o.Dir))
	o.Progress = show
	report, err := convert.Run(ctx, o)
	done(err)
	if err != nil {
		return err
	}
	for _, note := range slices.Compact(report.Notes) {
		fmt.Fprintf(c.App.ErrWriter, "note: %s\n", note)
	}
	moved, finish := progress.Store(c.App.ErrWriter)
	m, err := s.Import(ctx, name, o.Dir, w, nil, moved)
	finish(err)
	if err != nil {
		return err
	}
	return reportStored(c, "imported", m)
}
