package storecmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/progress"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/jinja"
	"github.com/inkling-go/inkling/internal/store"
)

const createDescription = `Makes a model of what a Modelfile says, in Ollama's syntax: FROM a GGUF file, the
folder of a converted model, or a model of the store or the hub, with settings.

  FROM hf.co/ORG/REPO:Q4_K_M
  PARAMETER temperature 0.7
  SYSTEM """You answer in verse."""

docs/store.md describes the instructions. A TEMPLATE is in Jinja. Files are copied
into the store, where the disk can do that without taking room twice.

Exit status: 0 done, 1 an error, 2 wrong usage, 130 interrupted.`

// Create makes a model of a Modelfile.
func Create() *cli.Command {
	return &cli.Command{
		Name:            "create",
		Usage:           "make a model of a Modelfile: files, settings, a system message",
		UsageText:       "inkling-run create NAME [-f MODELFILE]",
		Description:     createDescription,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Value: "Modelfile", Usage: "read `MODELFILE`, - for standard input; paths in it count from its folder"},
		},
		OnUsageError: usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usage.Errorf("%d names, want one for the model", c.NArg())
			}
			if _, err := store.ParseName(c.Args().First()); err != nil {
				return &usage.Error{Err: err}
			}
			return interrupt.RunOrLeave(c.Context, func(ctx context.Context) error { return runCreate(ctx, c) })
		},
	}
}

func runCreate(ctx context.Context, c *cli.Context) error {
	f, err := readModelfile(c.String("file"), c.App.Reader)
	if err != nil {
		return err
	}
	s, err := store.Open("")
	if err != nil {
		return err
	}
	show, done := progress.Store(c.App.ErrWriter)
	m, err := s.Create(ctx, c.Args().First(), f, show)
	done(err)
	if err != nil {
		return fmt.Errorf("%s: %w", c.String("file"), err)
	}
	return reportStored(c, "created", m)
}

// readModelfile reads a Modelfile and checks its template.
func readModelfile(path string, stdin io.Reader) (*store.Modelfile, error) {
	r, dir := stdin, "."
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		r, dir = file, filepath.Dir(path)
	}
	f, err := store.ParseModelfile(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Template != "" {
		if _, err := jinja.Compile(f.Template); err != nil {
			return nil, fmt.Errorf("%s: TEMPLATE: %w", path, err)
		}
	}
	f.Dir = dir
	return f, nil
}
