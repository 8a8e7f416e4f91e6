// Package convert turns checkpoints in safetensors form into GGUF files.
//
// A [Source] is the folder of a checkpoint. The architecture that its config.json
// names, an [Arch], makes a [Plan] of it: which files come out, with which keys,
// and for every tensor of theirs the rows of the checkpoint tensor that it is made
// of. [Run] carries the plan out. It reads each shard once from front to back, converts
// chunks of rows on all cores into their places in the outputs, and gives the files
// their names only when all of them are complete.
//
// Weights may come quantised; package quantin makes numbers of them.
//
// Architectures live in packages of their own and are linked in by a blank import.
package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/inkling-go/inkling/internal/gguf"
)

// Options say what to convert and how.
type Options struct {
	Dir      string  // the checkpoint
	OutDir   string  // for the outputs, created if it is not there; empty for Dir
	Name     string  // of the model, in file names and general.name; empty for that of Dir
	OutType  OutType // empty for OutAuto
	Recipe   Recipe  // types of the language model's tensors; nil for that of OutType
	Imatrix  *Imatrix
	Only     []Kind // the files to write; nil for all
	NoMTP    bool   // leave the layers for multi-token prediction out; without it they must be there if the index lists them
	SplitMax int64  // bytes of data of a file, beyond which a model is split; 0 for one file
	DryRun   bool   // plan and report only
	Force    bool   // replace existing outputs
	AllowNaN bool   // convert weights that are NaN or infinite as they are
	Workers  int    // goroutines that convert; 0 for one per core

	// Keep leaves incomplete files in place when the context is cancelled or the disk
	// is full, with a journal beside them. Resume goes on with such a run, or with one
	// that was killed: what its journal lists is checked and not converted again.
	Keep, Resume bool

	// Verify reads the outputs back and compares them with the checkpoint. Outputs
	// that are all there are then compared only, unless Force is set.
	Verify bool

	// Progress, if not nil, is called from one goroutine at a time: before each
	// tensor, and as its bytes are written.
	Progress func(Progress)
}

// Progress is how far a conversion is.
type Progress struct {
	File        string // path of the output in work
	Tensor      string // of it, in work
	Done, Total int64  // bytes, over all outputs

	Shard                 string // of the checkpoint, being read
	ShardDone, ShardTotal int64  // bytes of it
}

// Report is what a conversion did, or in a dry run would do.
type Report struct {
	Arch  string
	Files []FileReport
	Notes []string // what the user should know
	Took  time.Duration

	Recipe   Recipe           // of the first file, nil for towers
	Memory   int64            // bytes of buffers at most, beside the pages of the checkpoint
	Kept     int64            // bytes of the outputs that an interrupted run had written
	Verified []TensorVerified // with Options.Verify
}

// FileReport is one output of a [Report].
type FileReport struct {
	Kind    Kind
	Path    string
	More    []string // the other parts of a split model
	Tensors int
	Bytes   int64       // of the tensors' data
	Types   []TypeCount // by ggml's number of the type
	Kept    bool        // it was there as this run would write it
}

// TypeCount is what the tensors of one type of a file amount to.
type TypeCount struct {
	Type    gguf.Type
	Tensors int
	Bytes   int64
}

// Run converts a checkpoint. Either all outputs are complete under their names
// when it returns, or an error is returned and nothing is left of them. A
// cancelled context is such an error, but see Options.Keep. The mmproj file that a
// conversion to another type has left is kept if it is the same.
//
// Errors that tell kinds apart: [FormatError] and those of the safetensors package
// for broken input, [UnsupportedError], [TensorsError], [NonFiniteError],
// [RangeError], [SpaceError]; one that wraps fs.ErrExist if an output exists and
// Force is not set.
func Run(ctx context.Context, o Options) (Report, error) {
	start := time.Now()
	o.OutType = cmp.Or(o.OutType, OutAuto)
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	src, arch, err := openSource(o.Dir, o.NoMTP)
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
	files, err := wanted(plan.Files, o)
	if err != nil {
		return Report{}, err
	}
	names, err := namesFor(o)
	if err != nil {
		return Report{}, err
	}
	report := Report{Arch: arch.Name(), Notes: append(src.Notes, plan.Notes...)}
	outs := make([]output, len(files))
	for i, f := range files {
		if outs[i], err = newOutput(src, f, o, names); err != nil {
			return Report{}, err
		}
		report.Files = append(report.Files, outs[i].report())
		report.Notes = append(report.Notes, outs[i].notes()...)
	}
	report.Recipe = typesFor(files[0], o).recipe
	if outs, err = keepTowers(ctx, src, outs, report.Files, o); err != nil {
		return Report{}, err
	}
	w, err := newWriting(src, outs, o)
	if err != nil {
		return Report{}, err
	}
	report.Memory = int64(o.Workers) * workBuffers * w.largestChunk()
	return report, w.carryOut(ctx, &report, names.outDir)
}

// carryOut does what the options want of the planned outputs.
func (w *writing) carryOut(ctx context.Context, report *Report, dir string) error {
	blocked := cmp.Or(checkPaths(w.outs, w.o.Force), checkSpace(dir, w.progress.Total, w.o.Resume))
	switch {
	case w.o.DryRun:
		if blocked != nil {
			report.Notes = append(report.Notes, blocked.Error())
		}
		return nil
	case w.o.Verify && !w.o.Force && allExist(w.outs):
		return w.verify(ctx, report)
	case blocked != nil:
		return blocked
	}
	if err := inFolder(dir, func() error { return w.all(ctx) }); err != nil {
		return err
	}
	report.Kept = w.kept
	report.Notes = append(report.Notes, w.notes()...)
	if w.o.Verify {
		return w.verify(ctx, report)
	}
	return nil
}

// wanted returns the planned files that the options ask for.
func wanted(files []File, o Options) ([]File, error) {
	var list []File
	for _, f := range files {
		if (o.Only == nil || slices.Contains(o.Only, f.Kind)) && !(o.NoMTP && f.Kind == MTP) {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return nil, &UnsupportedError{o.Dir, fmt.Sprintf("the checkpoint makes no file of the kinds wanted: %v", o.Only)}
	}
	return list, nil
}

// notes says what the user should know of the weights that were converted.
func (w *writing) notes() []string {
	var notes []string
	if bad := w.nonFinite(); bad != nil {
		notes = append(notes, "kept "+bad.text())
	}
	if w.rounded > 0 {
		notes = append(notes, plural(w.rounded, "row")+" of codes rounded again, as the scales do not fit the output type")
	}
	var all loss
	n := int64(0)
	for _, t := range w.targets {
		if t.loss != nil && t.loss.squares > 0 {
			all.squares += t.loss.squares
			all.errors += t.loss.errors
			n++
		}
	}
	if n > 0 {
		notes = append(notes, fmt.Sprintf("%s of the checkpoint rounded again to the nearest type; relative error %.4f",
			plural(n, "quantised tensor"), math.Sqrt(all.errors/all.squares)))
	}
	return notes
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
