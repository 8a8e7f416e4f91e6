package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/gguf"
)

const showDescription = `MODEL is the name of a model in the store, or a GGUF file: a text model or a
projector (mmproj), whole or one part of a split one. Only its header is read. For
a model of the store there are its settings as well; --modelfile prints these alone,
as create takes them. Without --keys and --tensors there is a
summary and both of them. Shapes have the row first, as ggml has them; long
values are shortened, but not with --json.

Exit status: 0 done, 1 an error, 2 wrong usage.`

// showCommand prints what is in a GGUF file.
func showCommand() *cli.Command {
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
		OnUsageError: onUsageError,
		Action:       showAction,
	}
}

func showAction(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef("%d models, want one", c.NArg())
	}
	keys, tensors := c.Bool("keys"), c.Bool("tensors")
	if c.Bool("json") && (keys || tensors) {
		return usagef("--json prints everything: leave out --keys and --tensors")
	}
	found, err := lookUpModel(c.Args().First())
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
	d, err := describeFile(f)
	if err != nil {
		return err
	}
	if found.Stored != nil {
		d.Stored = newStoredInfo(found.Stored)
	}
	if c.Bool("json") {
		return encodeJSON(c.App.Writer, d)
	}
	all := !keys && !tensors
	p := &filePrinter{w: c.App.Writer}
	if all {
		p.summary(d)
		p.stored(d.Stored)
	}
	if all || keys {
		p.keys(f)
	}
	if all || tensors {
		p.tensors(d)
	}
	return p.err
}

// description is what show tells about a file, in the form of --json.
type description struct {
	File         string         `json:"file"`
	Parts        int            `json:"parts"`
	Bytes        int64          `json:"bytes"`
	Architecture string         `json:"architecture"`
	Name         string         `json:"name,omitempty"`
	Parameters   int64          `json:"parameters"`
	Context      uint64         `json:"context_length,omitempty"`
	Quantisation string         `json:"quantisation"`        // the type that most weights have
	Projector    string         `json:"projector,omitempty"` // file beside a text model
	Stored       *storedInfo    `json:"stored,omitempty"`
	Types        []typeTotal    `json:"types"`
	Keys         map[string]any `json:"keys"`
	Tensors      []tensor       `json:"tensors"`
}

// typeTotal is what the tensors of one type amount to.
type typeTotal struct {
	Type       string `json:"type"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}

type tensor struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"` // ggml order
	Bytes int64   `json:"bytes"`
}

func describeFile(f *gguf.File) (*description, error) {
	d := &description{File: f.Path(), Parts: len(f.Parts()), Keys: map[string]any{}}
	for _, p := range f.Parts() {
		d.Bytes += int64(len(p))
	}
	var err error
	if d.Architecture, err = f.Str("general.architecture"); err != nil {
		return nil, err
	}
	if d.Name, err = f.StrOr("general.name", ""); err != nil {
		return nil, err
	}
	if d.Context, err = f.UintOr(d.Architecture+".context_length", 0); err != nil {
		return nil, err
	}
	if d.Architecture != "clip" {
		if d.Projector, err = engine.FindProjector(f.Path()); err != nil {
			d.Projector = err.Error() // several: which one is for run to be told
		}
	}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		d.Keys[key] = jsonValue(v)
	}
	d.addTensors(f.Tensors())
	return d, nil
}

// addTensors lists the tensors and adds up their types, in order of appearance.
func (d *description) addTensors(tensors []gguf.TensorInfo) {
	index := map[gguf.Type]int{}
	most := -1
	for _, t := range tensors {
		d.Tensors = append(d.Tensors, tensor{t.Name, t.Type.String(), t.Dims, t.Size})
		d.Parameters += t.Elems()
		i, ok := index[t.Type]
		if !ok {
			i = len(d.Types)
			index[t.Type] = i
			d.Types = append(d.Types, typeTotal{Type: t.Type.String()})
		}
		total := &d.Types[i]
		total.Tensors++
		total.Parameters += t.Elems()
		total.Bytes += t.Size
		if most < 0 || total.Parameters > d.Types[most].Parameters {
			most = i
		}
	}
	if most >= 0 {
		d.Quantisation = d.Types[most].Type
	}
}
