package devices

import (
	"cmp"
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/machine"
	"github.com/inkling-go/inkling/models"
)

// measure declares the model on a planner and compares what it takes with what is
// free.
func (p *planning) measure(l layout) (*Choice, *TooLargeError, error) {
	devs, place, err := p.place(l)
	if err != nil {
		return nil, nil, err
	}
	planner, err := binding.NewPlanner(devs...)
	if err != nil {
		return nil, nil, err
	}
	defer planner.Close()
	if err := p.declare(planner, place); err != nil {
		return nil, nil, err
	}
	c := &Choice{Devices: devs, Place: place}
	for i, n := range planner.Planned() {
		free, _ := devs[i].Memory()
		if m, ok := machine.ReadMemory(); ok && devs[i].IsCPU() {
			free = m.Available
		}
		need := Need{Device: devs[i], Memory: n.Memory, Mapped: n.Mapped, Compute: n.Compute, Free: free}
		for _, d := range place.Layers {
			if d == i {
				need.Layers++
			}
		}
		c.Needs = append(c.Needs, need)
		room := free
		if !devs[i].IsCPU() {
			room -= reserve
		}
		if need.total() > room {
			return nil, &TooLargeError{Model: p.Model.Path(), Need: need, Why: "nothing else was tried"}, nil
		}
	}
	c.simplify()
	return c, nil, nil
}

// declare lays out everything that will be loaded, and measures the graphs of the
// largest steps.
func (p *planning) declare(planner *binding.Backend, place models.Placement) error {
	params := models.Params{Backend: planner, Place: place, NoMmap: p.NoMmap, MTP: p.MTP, MTPDepths: p.MTPDepths}
	m, err := models.Open(p.Model, params)
	if err != nil {
		return err
	}
	defer m.Close()
	if p.MMProj != nil {
		params.Backend, params.Place, params.MTP = planner.Parts()[0], models.Placement{}, nil
		if err := models.CheckProjector(p.MMProj, p.Model); err != nil {
			return err
		}
		pr, err := models.OpenProjector(p.MMProj, params)
		if err != nil {
			return err
		}
		defer pr.Close()
	}
	limit := m.Config().Context
	c, err := m.NewCache(p.Parallel, min(cmp.Or(p.Context, DefaultContext), limit), p.KV)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, rows := range []int{1, p.UBatch} { // their graphs are kept side by side
		if _, err := m.ComputeBytes(c, rows); err != nil {
			return err
		}
	}
	return nil
}

// simplify leaves out devices that have nothing to do.
func (c *Choice) simplify() {
	used := make([]bool, len(c.Devices))
	used[c.Place.Embedding], used[c.Place.Output] = true, true
	for _, d := range c.Place.Layers {
		used[d] = true
	}
	for _, o := range c.Place.Overrides {
		used[o.Device] = true
	}
	if c.Place.HostExperts > 0 {
		used[len(used)-1] = true
	}
	i := slices.Index(used, true)
	if slices.Contains(used[i+1:], true) {
		return // several: all of them stay, the CPU for what the scheduler leaves to it
	}
	c.Devices, c.Needs, c.Place = c.Devices[i:i+1], c.Needs[i:i+1], models.Placement{}
}
