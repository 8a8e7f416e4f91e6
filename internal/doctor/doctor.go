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
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/machine"
	"github.com/inkling-go/inkling/models"
)

// Options say what to look at.
type Options struct {
	Model  string // text GGUF
	MMProj string // projector GGUF; may be empty
	MTP    string // drafting layers; may be empty

	Devices  devices.Options
	Context  int           // positions wanted, which the advice is for; 0: devices.DefaultContext, or the model's if that is less
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
	Context int    `json:"context"`
	KV      int64  `json:"kv"`      // keys and values
	State   int64  `json:"state"`   // last inputs of convolutions
	Compute int64  `json:"compute"` // intermediate results of the largest steps
	Total   int64  `json:"total"`   // with the weights
	Fits    Fit    `json:"fits"`
	Layout  string `json:"layout,omitempty"` // what is on which device, where there are GPUs
}

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
		Model: o.Model, Arch: p.config().Arch, MaxContext: p.config().Context,
		Context: p.o.Context, KVType: p.o.KV.String(), Parallel: p.o.Parallel, UBatch: p.o.UBatch, Parameters: p.parameters,
	}
	for _, n := range p.contexts() {
		row, err := p.row(n, p.o.KV)
		if err != nil {
			return nil, err
		}
		r.Contexts = append(r.Contexts, row)
	}
	r.Weights = p.weights
	if r.Advice, err = p.advice(); err != nil {
		return nil, err
	}
	r.Fallback = append([]string{}, p.lacks...)
	return r, nil
}

// plan is a model that is looked at.
type plan struct {
	o          Options
	file       *models.File
	mmproj     *models.File // nil without
	mtp        int64        // bytes of the drafting layers
	parameters int64
	gpu        bool
	weights    []Weights // of the wanted context's layout
	lacks      []string
	cpu        *layout // kept, since it is the same for every context
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
	if o.MMProj != "" {
		if p.mmproj, err = models.OpenFile(o.MMProj); err != nil {
			return nil, err
		}
	}
	if o.MTP != "" {
		if p.mtp, err = tensorBytes(o.MTP); err != nil {
			return nil, err
		}
	}
	for _, t := range p.file.Tensors() {
		p.parameters += t.Elems()
	}
	found, err := binding.FindDevices(o.Devices.Device)
	if err != nil {
		return nil, err
	}
	p.gpu = !found[0].IsCPU()
	if p.cpu, err = newLayout(p.file, &devices.Choice{Devices: []binding.Device{binding.CPU()}}); err != nil {
		return nil, err
	}
	n := p.config().Context
	p.o.Context = cmp.Or(o.Context, min(n, devices.DefaultContext))
	if o.Context > n {
		return nil, fmt.Errorf("%s: ctx-size: %d is more than the %d positions that the model was made for", o.Model, o.Context, n)
	}
	return p, nil
}

// config is that of the model, which does not depend on where it is.
func (p *plan) config() models.Config { return p.cpu.model.Config() }

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
	if p.cpu != nil {
		p.cpu.close()
	}
	var errs []error
	for _, f := range []*models.File{p.file, p.mmproj} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// contexts are the lengths to show, ascending, the wanted one and the model's own
// among them.
func (p *plan) contexts() []int {
	most := p.config().Context
	list := append([]int{p.o.Context, most}, p.o.Contexts...)
	if len(p.o.Contexts) == 0 {
		list = append(list, usualContexts[:]...)
	}
	return ascending(list, most)
}
