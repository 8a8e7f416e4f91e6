package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/machine"
	"github.com/inkling-go/inkling/models"
)

// Subject is a loaded model that is measured.
type Subject struct {
	File  *gguf.File
	Costs Costs

	be    *binding.Backend
	model models.Model
}

// Loading says how a model is loaded.
type Loading struct {
	Threads int
	NoMmap  bool
	KV      binding.DType
	MakeUp  bool   // weights instead of reading them
	Seed    uint64 // of those
}

// Open loads the text model of a GGUF file.
func Open(path string, l Loading) (_ *Subject, err error) {
	s := new(Subject)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.File, err = models.OpenFile(path); err != nil {
		return nil, err
	}
	p := models.Params{NoMmap: l.NoMmap}
	if l.MakeUp {
		if err := roomFor(s.File); err != nil {
			return nil, err
		}
		p.Fill = Fill(l.Seed)
	}
	if s.be, err = binding.NewBackend(binding.CPU(), l.Threads); err != nil {
		return nil, err
	}
	p.Backend = s.be
	if s.model, err = models.Open(s.File, p); err != nil {
		return nil, err
	}
	s.Costs, err = ReadCosts(s.File, s.model, l.KV)
	return s, err
}

// Device is the name of the device that computes.
func (s *Subject) Device() string { return s.be.Device().Name() }

// WeightBytes is the size of all weights.
func (s *Subject) WeightBytes() int64 { return s.model.WeightBytes() }

// Run measures the model, see [Run].
func (s *Subject) Run(ctx context.Context, o Options, bandwidth float64) ([]Result, error) {
	return Run(ctx, s.model, o, s.Costs, bandwidth)
}

// Close frees the model.
func (s *Subject) Close() error {
	if s.model != nil {
		s.model.Close()
	}
	if s.be != nil {
		s.be.Close()
	}
	if s.File != nil {
		return s.File.Close()
	}
	return nil
}

// roomFor refuses to make up weights that the machine has no memory for: the system
// would end the process, or others.
func roomFor(f *gguf.File) error {
	mem, ok := machine.ReadMemory()
	if !ok {
		return nil
	}
	var n int64
	for _, t := range f.Tensors() {
		n += t.Size
	}
	if n > mem.Available {
		const gib = 1 << 30
		return fmt.Errorf("the made-up weights take %.1f GiB, and %.1f GiB of memory are available: --layers N makes fewer layers, --type a smaller one",
			float64(n)/gib, float64(mem.Available)/gib)
	}
	return nil
}
