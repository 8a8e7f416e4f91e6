package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/machine"
	"github.com/inkling-go/inkling/models"
)

// Subject is a loaded model that is measured.
type Subject struct {
	File  *gguf.File
	Costs Costs

	mtp    *gguf.File // nil without
	mmproj *gguf.File // nil without
	be     *binding.Backend
	device string
	model  models.Model

	projector models.Projector // nil without

	threads int
}

// Loading says how a model is loaded.
type Loading struct {
	Threads int
	NoMmap  bool
	Reading models.ReadAhead
	KV      binding.DType
	Devices devices.Options
	Context int    // positions of the largest test, all sequences together
	UBatch  int    // rows of the largest step
	MTP     string // GGUF of layers for multi-token prediction; empty: the model's own
	Depths  int    // of them, that are loaded
	MMProj  string // GGUF of the towers, which are measured too; empty: none are
	MakeUp  bool   // weights instead of reading them
	Seed    uint64 // of those
}

// Open loads the text model of a GGUF file, and its towers if they are measured.
func Open(path string, l Loading) (_ *Subject, err error) {
	s := &Subject{threads: l.Threads}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.File, err = models.OpenFile(path); err != nil {
		return nil, err
	}
	p := models.Params{NoMmap: l.NoMmap, ReadAhead: l.Reading, MTPDepths: l.Depths}
	if l.MTP != "" {
		if s.mtp, err = models.OpenFile(l.MTP); err != nil {
			return nil, err
		}
		p.MTP = s.mtp
	}
	if l.MMProj != "" {
		if s.mmproj, err = models.OpenFile(l.MMProj); err != nil {
			return nil, err
		}
		l.Context = max(l.Context, towerPositions())
	}
	if l.MakeUp {
		p.Fill = Fill(l.Seed)
	}
	choice, err := devices.Choose(l.Devices, devices.Subject{
		Model: s.File, Context: l.Context, Parallel: 1, UBatch: l.UBatch, KV: l.KV, NoMmap: l.NoMmap, MTP: s.mtp, MTPDepths: l.Depths, MMProj: s.mmproj,
	})
	if err != nil {
		return nil, err
	}
	if l.MakeUp {
		if err := roomFor(choice, s.File, s.mmproj); err != nil {
			return nil, err
		}
	}
	if s.be, err = choice.Open(l.Threads); err != nil {
		return nil, err
	}
	p.Backend, p.Place, s.device = s.be, choice.Place, choice.String()
	if s.model, err = models.Open(s.File, p); err != nil {
		return nil, err
	}
	if s.mmproj != nil {
		if err := s.openProjector(p); err != nil {
			return nil, err
		}
	}
	s.Costs, err = ReadCosts(s.File, s.model, l.KV)
	return s, err
}

// Device says which devices compute.
func (s *Subject) Device() string { return s.device }

// DeviceBandwidth measures the memory of the main GPU, see [CopyBandwidth]; 0 on the CPU.
func (s *Subject) DeviceBandwidth(ctx context.Context) (float64, error) {
	gpu := s.be.Parts()[0]
	if gpu.Device().IsCPU() {
		return 0, nil
	}
	return CopyBandwidth(ctx, gpu)
}

// Streaming compares where experts in host memory may be computed; nil if there are none.
func (s *Subject) Streaming() *binding.Streaming { return s.be.Streaming() }

// WeightBytes is the size of all weights.
func (s *Subject) WeightBytes() int64 { return s.model.WeightBytes() }

// Run measures the model and its towers, see [Run].
func (s *Subject) Run(ctx context.Context, o Options, bandwidth float64) (_ []Result, err error) {
	if s.projector != nil {
		if o.media, err = drawMedia(s.projector); err != nil {
			return nil, fmt.Errorf("%s: %w", s.mmproj.Path(), err)
		}
	}
	return Run(ctx, s.be, s.model, o, s.Costs, bandwidth)
}

// Close frees the model.
func (s *Subject) Close() error {
	if s.projector != nil {
		s.projector.Close()
	}
	if s.model != nil {
		s.model.Close()
	}
	if s.be != nil {
		s.be.Close()
	}
	var errs []error
	for _, f := range []*gguf.File{s.File, s.mtp, s.mmproj} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// roomFor refuses to make up weights that the machine has no memory for: the system
// would end the process, or others. What is on GPUs was looked at before.
func roomFor(choice *devices.Choice, text, mmproj *gguf.File) error {
	mem, ok := machine.ReadMemory()
	if !ok {
		return nil
	}
	var n int64
	if choice.Needs == nil {
		for _, t := range text.Tensors() {
			n += t.Size
		}
		if mmproj != nil {
			for _, t := range mmproj.Tensors() {
				n += t.Size
			}
		}
	}
	for _, need := range choice.Needs {
		if need.Device.IsCPU() {
			n += need.Memory + need.Mapped
		}
	}
	if n > mem.Available {
		const gib = 1 << 30
		return fmt.Errorf("the made-up weights take %.1f GiB, and %.1f GiB of memory are available: --layers N makes fewer layers, --type a smaller one",
			float64(n)/gib, float64(mem.Available)/gib)
	}
	return nil
}
