// Package convert turns checkpoints in safetensors form into GGUF files.
//
// A [Source] is the folder of a checkpoint. The architecture that its config.json
// names, an [Arch], makes a [Plan] of it: which files come out, with which keys,
// and for every tensor of theirs the rows of the checkpoint tensor that it is made
// of. [Run] carries the plan out. It maps the checkpoint, converts one tensor at a
// time by chunks of rows on all cores, and gives the files their names only when
// all of them are complete.
//
// Architectures live in packages of their own and are linked in by a blank import.
package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"time"

	"github.com/inkling-go/inkling/internal/gguf"
)

// Options say what to convert and how.
type Options struct {
	Dir      string  // the checkpoint
	OutDir   string  // for the outputs, created if it is not there; empty for Dir
	Name     string  // of the model, in file names and general.name; empty for that of Dir
	OutType  OutType // empty for OutAuto
	DryRun   bool    // plan and report only
	Force    bool    // replace existing outputs
	AllowNaN bool    // convert weights that are NaN or infinite as they are
	Workers  int     // goroutines that convert; 0 for one per core

	// Progress, if not nil, is called from one goroutine at a time: before each
	// tensor, and as its bytes are written.
	Progress func(Progress)
}

// Progress is how far a conversion is.
type Progress struct {
	File        string // path of the output in work
	Tensor      string // of it, in work
	Done, Total int64  // bytes, over all outputs
}

// Report is what a conversion did, or in a dry run would do.
type Report struct {
	Arch  string
	Files []FileReport
	Notes []string // what the user should know
	Took  time.Duration
}

// FileReport is one output of a [Report].
type FileReport struct {
	Kind    Kind
	Path    string
	Tensors int
	Bytes   int64       // of the tensors' data
	Types   []TypeCount // by ggml's number of the type
}

// TypeCount is what the tensors of one type of a file amount to.
type TypeCount struct {
	Type    gguf.Type
	Tensors int
	Bytes   int64
}

// Run converts a checkpoint. Either all outputs are complete under their names
// when it returns, or an error is returned and nothing is left of them. A
// cancelled context is such an error.
//
// Errors that tell kinds apart: [FormatError] and those of the safetensors package
// for broken input, [UnsupportedError], [TensorsError], [NonFiniteError],
// [RangeError]; one that wraps fs.ErrExist if an output exists and Force is not set.
func Run(ctx context.Context, o Options) (Report, error) {
	start := time.Now()
	src, arch, err := OpenSource(o.Dir)
	if err != nil {
		return Report{}, err
	}
	report, err := run(ctx, src, arch, o)
	report.Took = time.Since(start)
	return report, errors.Join(err, src.Close())
}

func run(ctx context.Context, src *Source, arch Arch, o Options) (Report, error) {
	plan, err := arch.Plan(src)
	if err != nil {
		return Report{}, err
	}
	names, err := namesFor(o)
	if err != nil {
		return Report{}, err
	}
	report := Report{Arch: arch.Name(), Notes: append(src.Notes, plan.Notes...)}
	outs := make([]output, len(plan.Files))
	for i, f := range plan.Files {
		if outs[i], err = newOutput(src, f, o.OutType, names); err != nil {
			return Report{}, err
		}
		report.Files = append(report.Files, outs[i].report())
		report.Notes = append(report.Notes, outs[i].notes(o.OutType)...)
	}
	err = checkPaths(outs, o.Force)
	if o.DryRun {
		if err != nil {
			report.Notes = append(report.Notes, err.Error())
		}
		return report, nil
	}
	if err != nil {
		return Report{}, err
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	w := &writing{src: src, outs: outs, o: o, pipe: newPipe(o.Workers)}
	for _, f := range report.Files {
		w.total += f.Bytes
	}
	defer w.pipe.stop()
	if err := inFolder(names.outDir, func() error { return w.all(ctx) }); err != nil {
		return Report{}, err
	}
	if w.bad.Count > 0 {
		report.Notes = append(report.Notes, "kept "+w.bad.text())
	}
	return report, nil
}

// writing is the state of writing the outputs.
type writing struct {
	src  *Source
	outs []output
	o    Options
	pipe *pipe

	done, total int64          // bytes of tensors
	bad         NonFiniteError // so far
}

// all writes the outputs and gives them their names.
func (w *writing) all(ctx context.Context) (err error) {
	writers := make([]*gguf.Writer, 0, len(w.outs))
	defer func() {
		for _, gw := range writers {
			err = errors.Join(err, gw.Abort()) // nothing to do after a commit
		}
	}()
	for _, out := range w.outs {
		gw, err := gguf.Create(out.path)
		if err != nil {
			return err
		}
		writers = append(writers, gw)
		if err := w.one(ctx, gw, out); err != nil {
			return err
		}
	}
	if w.bad.Count > 0 && !w.o.AllowNaN {
		w.bad.Dir = w.src.Dir
		return &w.bad
	}
	return commitAll(ctx, writers, w.outs)
}

// one writes the header and the data of one output.
func (w *writing) one(ctx context.Context, gw *gguf.Writer, out output) error {
	for _, kv := range out.kv {
		if err := gw.Set(kv.Key, kv.Value); err != nil {
			return err
		}
	}
	for i, t := range out.file.Tensors {
		if err := gw.AddTensor(t.Name, out.types[i], t.Dims); err != nil {
			return err
		}
	}
	for i, t := range out.file.Tensors {
		if err := w.tensor(ctx, gw, out, t, out.types[i]); err != nil {
			return err
		}
	}
	return nil
}

// tensor converts one tensor. Once weights are found that the run will fail for,
// the rest is read only to count them.
func (w *writing) tensor(ctx context.Context, gw *gguf.Writer, out output, t Tensor, to gguf.Type) error {
	job, err := newRowJob(t, w.src.Tensors.Bytes, to, w.pipe.chunkBytes)
	if err != nil {
		return err
	}
	w.progress(out, t, 0)
	var c counts
	pages := releaser{src: w.src, job: job}
	convert := func(dst io.Writer) error {
		c, err = w.pipe.run(ctx, dst, job, func(n, rows int64) {
			w.progress(out, t, n)
			pages.upTo(rows)
		})
		return err
	}
	if w.bad.Count > 0 && !w.o.AllowNaN {
		err = convert(io.Discard)
	} else {
		err = gw.WriteTensor(t.Name, convert)
	}
	switch {
	case err != nil:
		return err
	case c.beyond > 0:
		return &RangeError{w.src.Dir, c.first, c.beyond, to.String()}
	case c.nonFinite > 0:
		if w.bad.Count == 0 {
			w.bad.First = c.first
		}
		w.bad.Count += c.nonFinite
		w.bad.Tensors++
		if to == gguf.Q8_0 && w.o.AllowNaN {
			return fmt.Errorf("%w, which %v has no place for", &NonFiniteError{
				w.src.Dir, c.nonFinite, 1, c.first,
			}, to)
		}
	}
	return nil
}

func (w *writing) progress(out output, t Tensor, n int64) {
	w.done += n
	if w.o.Progress != nil {
		w.o.Progress(Progress{File: out.path, Tensor: t.Name, Done: w.done, Total: w.total})
	}
}

// names are where the outputs go and what they are called.
type names struct {
	outDir string
	model  string // in file names
	title  string // general.name
}

// namesFor derives names from the options.
func namesFor(o Options) (names, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return names{}, err
	}
	n := names{outDir: o.OutDir, model: o.Name, title: o.Name}
	if n.outDir == "" {
		n.outDir = o.Dir
	}
	if n.model == "" {
		n.model = filepath.Base(dir)
		n.title = cmp.Or(title(n.model), n.model)
	}
	return n, CheckName(n.model)
}
