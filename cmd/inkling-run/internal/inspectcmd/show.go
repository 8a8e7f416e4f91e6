// Package inspectcmd has the commands that look at models and inputs and generate nothing:
// show, tokenize, template and media.
package inspectcmd

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/describe"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/gguf"
)

const showDescription = `MODEL is the name of a model in the store, or a GGUF file: a text model or a
projector (mmproj), whole or one part of a split one. Only its header is read. For
a model of the store there are its settings as well; --modelfile prints these alone,
as create takes them. Without --keys and --tensors there is a
summary and both of them. Shapes have the row first, as ggml has them; long
values are shortened, but not with --json.

Exit status: 0 done, 1 an error, 2 wrong usage.`

// Show prints what is in a GGUF file.
func Show() *cli.Command {
	return &cli.Command{
		Name:            "show",
		Usage:           "print what a model is: settings, keys, tensors, sizes",
		UsageText:       "inkling-run show MODEL [--keys] [--tensors] [--json] [--modelfile]",
		Description:     showDescription,
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "keys", Usage: "print the keys and their values only"},
			&cli.BoolFlag{Name: "tensors", Usage: "print the tensors and the totals of their types only"},
			&cli.BoolFlag{Name: "json", Usage: "print everything as one JSON object"},
			&cli.BoolFlag{Name: "modelfile", Usage: "print the Modelfile of a model of the store only"},
		},
		OnUsageError: usage.OnError,
		Action:       showAction,
	}
}

func showAction(c *cli.Context) error {
	if c.NArg() != 1 {
		return usage.Errorf("%d models, want one", c.NArg())
	}
	keys, tensors := c.Bool("keys"), c.Bool("tensors")
	if c.Bool("json") && (keys || tensors) {
		return usage.Errorf("--json prints everything: leave out --keys and --tensors")
	}
	found, err := locate.LookUp(c.Args().First())
	if err != nil {
		return err
	}
	if c.Bool("modelfile") {
		return showModelfile(c, found)
	}
	if st, err := os.Stat(found.Path); err == nil && st.IsDir() {
		return fmt.Errorf("%s is a folder, want a GGUF file; convert-inkling --dry-run shows what a checkpoint becomes", found.Path)
	}
	f, err := gguf.Open(found.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	d, err := describe.File(f)
	if err != nil {
		return err
	}
	if found.Stored != nil {
		d.Stored = describe.NewStoredInfo(found.Stored)
	}
	if c.Bool("json") {
		return report.JSON(c.App.Writer, d)
	}
	all := !keys && !tensors
	p := &report.Printer{W: c.App.Writer}
	if all {
		printSummary(p, d)
		printStored(p, d.Stored)
	}
	if all || keys {
		printKeys(p, f)
	}
	if all || tensors {
		printTensors(p, d)
	}
	return p.Err
}
