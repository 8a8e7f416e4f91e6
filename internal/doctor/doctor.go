// Package doctor says before a model is loaded what it is going to take, whether
// the machine has that, and what to change if not.
//
// Nothing is estimated by formulas of its own: the model is laid out on a planner
// (binding.NewPlanner), which measures the same declarations and graphs that the
// engine allocates. Weights are looked up in the file's header and not read.
package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/machine"
	"github.com/inkling-go/inkling/models"
)

// Options say what to look at.
type Options struct {
	Model  string // text GGUF
	MMProj string // projector GGUF; may be empty
	MTP    string // drafting layers; may be empty

	Device   binding.Device
	Context  int           // positions wanted, which the advice is for; 0: the engine's default
	Contexts []int         // lengths to report besides; nil: some usual ones
	KV       binding.DType // type of keys and values
	Parallel int           // sequences at once, each with all positions; 0: 1
	UBatch   int           // prompt rows in one graph
	Memory   machine.Memory
}

// Fit says whether something has room.
type Fit string

// Whether a model has room.
const (
	Fits Fit = "yes"
	// Slow: caches and intermediate results have room, the weights have not. They are
	// mapped, so the system reads what it dropped from the disk, again and again.
	Slow  Fit = "slow"
	Lacks Fit = "no"
)

// Report is what a model takes, in bytes.
type Report struct {
	Model      string    `json:"model"`
	Arch       string    `json:"architecture"`
	MaxContext int       `json:"max_context"`
	Parameters int64     `json:"parameters"` // of the text model
	KVType     string    `json:"kv_type"`
	Parallel   int       `json:"parallel"`
	UBatch     int       `json:"ubatch_size"`
	Weights    []Weights `json:"weights"`
	Context    int       `json:"context"`  // the wanted one
	Contexts   []Row     `json:"contexts"` // ascending; the wanted one is among them

	// Fallback lists operations that the device has no kernel for.
	Fallback []string `json:"fallback"`
	// Advice is what to change, most useful first; empty if the wanted context fits.
	Advice []string `json:"advice"`
}

// Weights are the tensors of one file on one device.
type Weights struct {
	Role   string `json:"role"` // text, mmproj, mtp
	File   string `json:"file"`
	Device string `json:"device"`
	Bytes  int64  `json:"bytes"`
}

// Wanted is the row of the wanted context.
func (r *Report) Wanted() Row {
	i := slices.IndexFunc(r.Contexts, func(row Row) bool { return row.Context == r.Context })
	return r.Contexts[i]
}

// Row is what a context of a length takes beside the weights.
type Row struct {
	Context int   `json:"context"`
	KV      int64 `json:"kv"`      // keys and values
	State   int64 `json:"state"`   // last inputs of convolutions
	Compute int64 `json:"compute"` // intermediate results of the largest steps
	Total   int64 `json:"total"`   // with the weights
	Fits    Fit   `json:"fits"`
}

// defaultContext is the engine's.
const defaultContext = 4096

// usualContexts are shown up to the model's own length.
var usualContexts = [...]int{4096, 32768, 131072}

// Check lays a model out and reports. Errors are those of opening it.
func Check(o Options) (_ *Report, err error) {
	p, err := newPlan(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	r := &Report{
		Model: o.Model, Arch: p.model.Config().Arch, MaxContext: p.model.Config().Context,
		Context: p.o.Context, KVType: p.o.KV.String(), Parallel: p.o.Parallel, UBatch: p.o.UBatch, Weights: p.weights, Parameters: p.parameters,
		Advice: []string{},
	}
	for _, n := range p.contexts() {
		row, err := p.row(n, p.o.KV)
		if err != nil {
			return nil, err
		}
		r.Contexts = append(r.Contexts, row)
	}
	if r.Advice, err = p.advice(); err != nil {
		return nil, err
	}
	r.Fallback = append([]string{}, p.be.Lacks()...)
	return r, nil
}

// plan is a model that is laid out and takes no memory.
type plan struct {
	o          Options
	be         *binding.Backend
	file       *models.File
	model      models.Model
	weights    []Weights
	parameters int64
}

func newPlan(o Options) (_ *plan, err error) {
	o.Parallel = max(o.Parallel, 1)
	p := &plan{o: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.file, err = models.OpenFile(o.Model); err != nil {
		return nil, err
	}
	if p.be, err = binding.NewPlanner(o.Device); err != nil {
		return nil, err
	}
	if p.model, err = models.Open(p.file, models.Params{Backend: p.be}); err != nil {
		return nil, err
	}
	for _, t := range p.file.Tensors() {
		p.parameters += t.Elems()
	}
	p.addWeights("text", o.Model, p.model.WeightBytes())
	for _, f := range []struct{ role, path string }{{"mmproj", o.MMProj}, {"mtp", o.MTP}} {
		if f.path == "" {
			continue
		}
		n, err := tensorBytes(f.path)
		if err != nil {
			return nil, err
		}
		p.addWeights(f.role, f.path, n)
	}
	n := p.model.Config().Context
	p.o.Context = cmp.Or(o.Context, min(n, defaultContext))
	if o.Context > n {
		return nil, fmt.Errorf("%s: ctx-size: %d is more than the %d positions that the model was made for", o.Model, o.Context, n)
	}
	return p, nil
}

func (p *plan) addWeights(role, path string, n int64) {
	p.weights = append(p.weights, Weights{Role: role, File: path, Device: p.o.Device.Name(), Bytes: n})
}

// tensorBytes adds up the tensors of a file.
func tensorBytes(path string) (n int64, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return 0, err
	}
	for _, t := range f.Tensors() {
		n += t.Size
	}
	return n, f.Close()
}

func (p *plan) close() error {
	if p.model != nil {
		p.model.Close()
	}
	if p.be != nil {
		p.be.Close()
	}
	if p.file != nil {
		return p.file.Close()
	}
	return nil
}

// contexts are the lengths to show, ascending, the wanted one and the model's own
// among them.
func (p *plan) contexts() []int {
	most := p.model.Config().Context
	list := append([]int{p.o.Context, most}, p.o.Contexts...)
	if len(p.o.Contexts) == 0 {
		list = append(list, usualContexts[:]...)
	}
	return ascending(list, most)
}

// row measures a context of n positions for each sequence.
func (p *plan) row(n int, kv binding.DType) (Row, error) {
	c, err := p.model.NewCache(p.o.Parallel, n, kv)
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", p.o.Model, err)
	}
	defer c.Close()
	r := Row{Context: n, State: c.StateBytes()}
	r.KV = c.Bytes() - r.State
	for _, rows := range []int{1, p.o.UBatch} { // their graphs are kept side by side
		b, err := p.model.ComputeBytes(c, rows)
		if err != nil {
			return Row{}, fmt.Errorf("%s: %w", p.o.Model, err)
		}
		r.Compute += b
	}
	r.Total = r.KV + r.State + r.Compute + p.weightBytes()
	r.Fits = p.fit(r)
	return r, nil
}

// weightBytes is the size of all files' tensors.
func (p *plan) weightBytes() (n int64) {
	for _, w := range p.weights {
		n += w.Bytes
	}
	return n
}

// room is the memory that there is on the device.
func (p *plan) room() int64 {
	if p.o.Device.IsCPU() {
		return p.o.Memory.Available
	}
	free, _ := p.o.Device.Memory()
	return free
}

func (p *plan) fit(r Row) Fit {
	switch room := p.room(); {
	case r.Total <= room:
		return Fits
	case p.o.Device.IsCPU() && r.Total-p.weightBytes() <= room:
		return Slow
	}
	return Lacks
}
