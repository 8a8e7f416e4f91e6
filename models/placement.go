package models

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/binding"
)

// Placement says on which device the parts of a text model are. Devices are
// numbered as the Parts of Params.Backend; the zero Placement puts all on the
// main one.
type Placement struct {
	Layers      []int // of each layer: its weights but the experts that HostExperts names, its part of the cache, its computation
	Embedding   int   // of the token embeddings
	Output      int   // of what follows the last layer
	HostExperts int   // routed experts of the first so many layers are in host memory
	Overrides   []Override
}

// Override places the tensors whose name a pattern matches, before all other
// rules; of several that match the first holds.
type Override struct {
	Pattern *regexp.Regexp
	Device  int
}

// Behind places all of a file where what follows the last layer is.
func (p Placement) Behind() Placement { return Placement{Embedding: p.Output, Output: p.Output} }

// isExpert matches the banks of routed experts.
var isExpert = regexp.MustCompile(`^blk\.\d+\.ffn_(gate|up|down|gate_up)_exps\.`)

// tensor is the device of a tensor of the text file; host is the CPU's number.
func (p *Placement) tensor(name string, host int) int {
	for _, o := range p.Overrides {
		if o.Pattern.MatchString(name) {
			return o.Device
		}
	}
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		number, _, _ := strings.Cut(rest, ".")
		i, err := strconv.Atoi(number)
		switch {
		case err != nil || i >= len(p.Layers):
			return p.Output
		case i < p.HostExperts && isExpert.MatchString(name):
			return host
		}
		return p.Layers[i]
	}
	if strings.HasPrefix(name, "token_embd") {
		return p.Embedding
	}
	return p.Output
}

// LayerDevices is the device of each of n layers.
func (p Params) LayerDevices(n int) []*binding.Backend {
	ds := make([]*binding.Backend, n)
	for i := range ds {
		ds[i] = p.part(p.deviceOf(i))
	}
	return ds
}

func (p Params) deviceOf(layer int) int {
	if layer < len(p.Place.Layers) {
		return p.Place.Layers[layer]
	}
	return p.Place.Output
}

// EmbeddingDevice is the device of the token embeddings.
func (p Params) EmbeddingDevice() *binding.Backend { return p.tensorDevice("token_embd.weight") }

// OutputDevice is the device of what follows the last layer.
func (p Params) OutputDevice() *binding.Backend { return p.part(p.Place.Output) }

func (p Params) part(i int) *binding.Backend { return p.Backend.Parts()[i] }

// tensorDevice is the device of a tensor of the file.
func (p Params) tensorDevice(name string) *binding.Backend {
	return p.part(p.Place.tensor(name, len(p.Backend.Parts())-1))
}

// check finds numbers of devices that the backend does not have.
func (p Params) check() error {
	n := len(p.Backend.Parts())
	all := append([]int{p.Place.Embedding, p.Place.Output}, p.Place.Layers...)
	for _, o := range p.Place.Overrides {
		all = append(all, o.Device)
	}
	for _, d := range all {
		if d < 0 || d >= n {
			return fmt.Errorf("something is placed on device %d, want 0 to %d", d, n-1)
		}
	}
	return nil
}
