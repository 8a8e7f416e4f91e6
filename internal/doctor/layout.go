package doctor

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/models"
)

// layout is a model that is declared on the devices of a choice.
type layout struct {
	choice *devices.Choice
	be     *binding.Backend
	model  models.Model
}

func newLayout(f *models.File, c *devices.Choice) (_ *layout, err error) {
	l := &layout{choice: c}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.be, err = binding.NewPlanner(c.Devices...); err != nil {
		return nil, err
	}
	l.model, err = models.Open(f, models.Params{Backend: l.be, Place: c.Place})
	return l, err
}

func (l *layout) close() {
	if l.model != nil {
		l.model.Close()
	}
	if l.be != nil {
		l.be.Close()
	}
}

// weights are the tensors of the text model on each device.
func (l *layout) weights(file string) []Weights {
	devs := l.choice.Devices
	if len(devs) == 1 {
		return []Weights{{"text", file, devs[0].Name(), l.model.WeightBytes()}}
	}
	var list []Weights
	for i, n := range l.be.Planned() {
		if n.Memory+n.Mapped > 0 {
			list = append(list, Weights{"text", file, devs[i].Name(), n.Memory + n.Mapped})
		}
	}
	return list
}

// row measures a context of n positions for each sequence.
func (p *plan) row(n int, kv binding.DType) (Row, error) {
	l := p.cpu
	if p.gpu {
		choice, err := devices.Choose(p.o.Devices, devices.Subject{
			Model: p.file, MMProj: p.mmproj, Context: n, Parallel: p.o.Parallel, UBatch: p.o.UBatch, KV: kv,
		})
		var tooLarge *devices.TooLargeError
		if errors.As(err, &tooLarge) { // its sizes are those of the CPU, near enough
			r, err := p.cpu.row(p, n, kv)
			r.Fits, r.Layout = Lacks, tooLarge.Error()
			return r, err
		}
		if err != nil {
			return Row{}, err
		}
		if l, err = newLayout(p.file, choice); err != nil {
			return Row{}, err
		}
		defer l.close()
	}
	r, err := l.row(p, n, kv)
	if err != nil {
		return r, err
	}
	if p.gpu {
		r.Layout = l.choice.String()
	}
	r.Fits = p.fit(r, l.choice)
	return r, nil
}

// row measures on one layout.
func (l *layout) row(p *plan, n int, kv binding.DType) (Row, error) {
	weights := l.weights(p.o.Model) // before anything else is declared
	c, err := l.model.NewCache(p.o.Parallel, n, kv)
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", p.o.Model, err)
	}
	defer c.Close()
	r := Row{Context: n, State: c.StateBytes()}
	r.KV = c.Bytes() - r.State
	for _, rows := range []int{1, p.o.UBatch} { // their graphs are kept side by side
		b, err := l.model.ComputeBytes(c, rows)
		if err != nil {
			return Row{}, fmt.Errorf("%s: %w", p.o.Model, err)
		}
		r.Compute += b
	}
	if n == p.o.Context || p.weights == nil {
		p.weights, p.lacks = append(weights, p.companions(l)...), l.be.Lacks()
	}
	r.Total = r.KV + r.State + r.Compute + p.weightBytes()
	return r, nil
}

// companions are the files beside the text model.
func (p *plan) companions(l *layout) []Weights {
	device := l.choice.Devices[0].Name()
	var list []Weights
	if p.mmproj != nil {
		n := int64(0)
		for _, t := range p.mmproj.Tensors() {
			n += t.Size
		}
		list = append(list, Weights{"mmproj", p.o.MMProj, device, n})
	}
	if p.mtp > 0 {
		list = append(list, Weights{"mtp", filepath.Clean(p.o.MTP), device, p.mtp})
	}
	return list
}

// weightBytes is the size of all files' tensors, textBytes that of the text model.
func (p *plan) weightBytes() (n int64) {
	for _, w := range p.weights {
		n += w.Bytes
	}
	return n
}

func (p *plan) textBytes() (n int64) {
	for _, w := range p.weights {
		if w.Role == "text" {
			n += w.Bytes
		}
	}
	return n
}

// fit compares a row with the memory that there is. A layout on GPUs was chosen to
// fit them; what it leaves to the host may still be more than that has.
func (p *plan) fit(r Row, c *devices.Choice) Fit {
	mapped, taken := p.weightBytes(), r.Total-p.weightBytes()
	if p.gpu {
		mapped, taken = 0, 0
		for _, n := range c.Needs {
			if n.Device.IsCPU() {
				mapped, taken = n.Mapped, n.Memory+n.Compute
			}
		}
	}
	switch {
	case mapped+taken <= p.o.Memory.Available:
		return Fits
	case taken <= p.o.Memory.Available:
		return Slow
	}
	return Lacks
}
