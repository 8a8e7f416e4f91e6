package devices

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models"
)

// reserve is what is left free on a GPU: its library's own buffers, and what products take
// for themselves: weights as F16, 64 MiB at a time, and rows as F16 or in 8 bits, which of 2048
// and six experts each are 50 MB.
const reserve = 768 << 20

// planning is the search for a layout.
type planning struct {
	Options
	Subject
	gpus   []binding.Device // the main one first
	layers int
	moe    bool // the model has routed experts
	split  []float64
	ngl    int           // layers on GPUs, the output counted as one more; -1: what fits
	embd   binding.DType // of the tokens' embedding
	nEmbd  int64
}

func newPlanning(o Options, s Subject, gpus []binding.Device) (*planning, error) {
	arch, err := s.Model.Str("general.architecture")
	if err != nil {
		return nil, err
	}
	layers, err := s.Model.Int(arch + ".block_count")
	if err != nil {
		return nil, err
	}
	layers -= int64(models.OwnDepths(s.Model)) // those are beside the output
	p := &planning{Options: o, Subject: s, layers: int(layers), ngl: -1}
	switch n, err := strconv.Atoi(o.GPULayers); {
	case o.GPULayers == "" || o.GPULayers == "auto":
	case o.GPULayers == "all":
		p.ngl = p.layers + 1
	case err != nil || n < 0:
		return nil, fmt.Errorf("gpu-layers: %q, want a number, all or auto", o.GPULayers)
	default:
		p.ngl = min(n, p.layers+1)
	}
	if t, ok := s.Model.Tensor("token_embd.weight"); ok && len(t.Dims) > 0 {
		p.embd, p.nEmbd = binding.DType(t.Type), t.Dims[0]
	}
	for _, t := range s.Model.Tensors() {
		p.moe = p.moe || strings.Contains(t.Name, "_exps.")
	}
	for i := range gpus { // the main one first
		j := (o.MainGPU + i) % len(gpus)
		p.gpus = append(p.gpus, gpus[j])
		share := float64(1)
		if o.TensorSplit == nil {
			free, _ := gpus[j].Memory()
			share = float64(max(free-reserve, 1))
		} else if share = 0; j < len(o.TensorSplit) {
			share = o.TensorSplit[j]
		}
		if !(share >= 0) {
			return nil, fmt.Errorf("tensor-split: %v, want shares of at least 0", o.TensorSplit)
		}
		p.split = append(p.split, share)
	}
	return p, nil
}

// layout is one candidate: so many of the GPUs, so many layers on them, the
// experts of so many layers in host memory.
type layout struct{ gpus, ngl, hostExperts int }

// choose tries layouts, the fastest first: everything on as few GPUs as
// possible; then experts of as few layers as possible in host memory; then whole
// layers. What the options fix is not varied.
func (p *planning) choose() (*Choice, error) {
	host := p.HostExperts
	if host == AllLayers {
		host = p.layers
	}
	ngl := p.ngl
	if ngl < 0 {
		ngl = p.layers + 1
	}
	var best *Choice
	var first *TooLargeError
	try := func(l layout) (bool, error) {
		c, tooLarge, err := p.measure(l)
		if err != nil {
			return false, err
		}
		if tooLarge != nil {
			if first == nil {
				first = tooLarge
			}
			return false, nil
		}
		best = c
		return true, nil
	}
	least := len(p.gpus) // that a layout is tried on: with shares given, all of them
	if p.TensorSplit == nil {
		least = 1
	}
	for n := least; n <= len(p.gpus); n++ {
		if ok, err := try(layout{n, ngl, host}); ok || err != nil {
			return best, err
		}
	}
	all := len(p.gpus)
	if p.HostExperts == 0 && p.moe { // the first of these that fits
		var failed error
		h := 1 + sort.Search(p.layers-1, func(i int) bool {
			ok, err := try(layout{all, ngl, i + 1})
			if err != nil {
				failed = err
			}
			return ok || err != nil
		})
		if ok, err := try(layout{all, ngl, h}); ok || err != nil || failed != nil {
			if best != nil {
				best.HostMoved = true
			}
			return best, cmp.Or(failed, err)
		}
		host = p.layers
	}
	if p.ngl >= 0 {
		first.Why = "--gpu-layers auto finds what fits; --cpu-moe leaves the experts in host memory; --ctx-size takes less"
		return nil, first
	}
	for less := ngl / 2; ; less /= 2 { // halves: each layer less is slower anyway
		if ok, err := try(layout{all, less, host}); ok || err != nil {
			return best, err
		}
		if less == 0 {
			break
		}
	}
	first.Why = "no part of it fits beside caches and intermediate results; --ctx-size and --ubatch-size take less, --device cpu takes none"
	return nil, first
}

// place lays the layers out.
func (p *planning) place(l layout) ([]binding.Device, models.Placement, error) {
	devs := append(slices.Clone(p.gpus[:l.gpus]), binding.CPU())
	host := len(devs) - 1
	place := models.Placement{HostExperts: l.hostExperts, Output: host, Embedding: host}
	onGPU := min(l.ngl, p.layers)
	sum := 0.0
	for _, s := range p.split[:l.gpus] {
		sum += s
	}
	at := func(i int) int { // the GPU of the i-th of the parts on GPUs
		x, acc := (float64(i)+0.5)/float64(l.ngl)*sum, 0.0
		for g, s := range p.split[:l.gpus] {
			if acc += s; x < acc {
				return g
			}
		}
		return l.gpus - 1
	}
	for i := range p.layers {
		d := host
		if k := i - (p.layers - onGPU); k >= 0 {
			d = at(k)
		}
		place.Layers = append(place.Layers, d)
	}
	if l.ngl > p.layers {
		place.Output = place.Layers[p.layers-1]
		if hasRows(devs[0], p.embd, p.nEmbd) {
			place.Embedding = place.Layers[0]
		}
	}
	for _, o := range p.Overrides {
		re, err := regexp.Compile(o.Pattern)
		if err != nil {
			return nil, place, fmt.Errorf("override-tensor: %w", err)
		}
		d, err := p.named(o.Device, devs)
		if err != nil {
			return nil, place, err
		}
		place.Overrides = append(place.Overrides, models.Override{Pattern: re, Device: d})
	}
	return devs, place, nil
}

// named finds a device of an override.
func (p *planning) named(name string, devs []binding.Device) (int, error) {
	plain := strings.ToLower(strings.ReplaceAll(name, ":", ""))
	for i, d := range devs {
		if strings.ToLower(d.Name()) == plain {
			return i, nil
		}
	}
	var names []string
	for _, d := range devs {
		names = append(names, d.Name())
	}
	return 0, fmt.Errorf("override-tensor: no device %q, want one of %s", name, strings.Join(names, ", "))
}

// hasRows reports whether a device can look up rows of n values of type t.
func hasRows(d binding.Device, t binding.DType, n int64) bool {
	if n < 1 || !t.Known() || n%t.BlockSize() != 0 { // opening the model says what is wrong
		return false
	}
	be, err := binding.NewPlanner(d)
	if err != nil {
		return false
	}
	defer be.Close()
	g := be.NewGraph(4)
	defer g.Close()
	_, ok := op.Rows(g, g.Input("rows", t, n, 2), g.Input("ids", binding.I32, 1))
	return ok
}
