// Package devices chooses where a model is computed: which GPUs, which layers on
// each, which experts stay in host memory. Nothing is guessed: each layout that is
// tried is declared on a planner (binding.NewPlanner) and compared with the memory
// that is free.
package devices

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// Options say what the user wants; the zero value leaves everything to Choose.
type Options struct {
	Device      string    // as binding.FindDevices takes it; empty: auto
	GPULayers   string    // how many layers are on GPUs, counted from the last, or all; empty or auto: what fits
	MainGPU     int       // number, in Device's order, of the GPU that has what is not in a layer
	TensorSplit []float64 // share of the layers for each GPU; nil: by free memory
	HostExperts int       // routed experts of the first so many layers stay in host memory; AllLayers, or 0: none unless they must
	Overrides   []Override
}

// AllLayers is a HostExperts that names every layer.
const AllLayers = -1

// Override places the tensors whose name matches a regular expression.
type Override struct {
	Pattern string
	Device  string // cpu, or a GPU such as cuda:0
}

// DefaultContext is the context length where none is named: what the model allows,
// up to this.
const DefaultContext = 4096

// Subject is what is going to be loaded.
type Subject struct {
	Model  *models.File
	MMProj *models.File // nil without
	MTP    *models.File // nil without

	MTPDepths int
	Context   int // positions; 0: what the model allows, up to DefaultContext
	Parallel  int // sequences
	UBatch    int // prompt rows in one graph
	KV        binding.DType
	NoMmap    bool
}

// Need is what a layout takes of a device, in bytes.
type Need struct {
	Device  binding.Device
	Layers  int   // that are computed there
	Memory  int64 // weights, caches, states
	Mapped  int64 // weights in mapped files
	Compute int64 // intermediate results
	Free    int64 // that is there
}

func (n Need) total() int64 { return n.Memory + n.Compute }

// Choice is a layout.
type Choice struct {
	Devices   []binding.Device // of the backend: one, or several with the CPU last
	Place     models.Placement
	Needs     []Need // for each of Devices; nil on the CPU alone, which is not measured
	HostMoved bool   // experts are in host memory because nothing else fits
}

// Open opens the backend of the layout.
func (c *Choice) Open(threads int) (*binding.Backend, error) {
	if len(c.Devices) == 1 {
		return binding.NewBackend(c.Devices[0], threads)
	}
	return binding.NewBackends(c.Devices, threads)
}

// Fuses reports whether one of the devices has operations of this project.
func (c *Choice) Fuses() bool {
	return slices.ContainsFunc(c.Devices, binding.Device.Fuses)
}

// String is the layout in a line for people.
func (c *Choice) String() string {
	if c.Needs == nil {
		return c.Devices[0].Name()
	}
	var parts []string
	for _, n := range c.Needs {
		part := fmt.Sprintf("%s (%s): %d layers, %s", n.Device.Name(), n.Device.Description(), n.Layers, Size(n.total()))
		if n.Mapped > 0 {
			part += fmt.Sprintf(" and %s mapped", Size(n.Mapped))
		}
		parts = append(parts, part+fmt.Sprintf(" of %s free", Size(n.Free)))
	}
	s := strings.Join(parts, "; ")
	if h := c.Place.HostExperts; h > 0 {
		s += fmt.Sprintf("; experts of %d layers in host memory", h)
	}
	return s
}

// TooLargeError says that a layout does not fit, with the numbers.
type TooLargeError struct {
	Model string
	Need  Need
	Why   string // what to do, or what was tried
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %s needs %s (%s of weights and caches, %s of intermediate results), %s are free: %s%s",
		e.Model, e.Need.Device.Name(), Size(e.Need.total()), Size(e.Need.Memory), Size(e.Need.Compute), Size(e.Need.Free), e.Why,
		moreMemory(e.Need.Device.Family(), e.Need.total()))
}

// moreMemory says how a program gets more of the memory that there is, for a family
// of devices whose system gives it a part only. need is in bytes.
func moreMemory(family string, need int64) string {
	if family != "Metal" && family != "MTL" {
		return ""
	}
	return fmt.Sprintf("; macOS gives a program a part of the memory: sudo sysctl iogpu.wired_limit_mb=%d raises it until the next start", need>>20+1024)
}

func (e *TooLargeError) Unwrap() error { return binding.ErrOutOfMemory }

// Size writes bytes for people.
func Size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// Choose finds the layout for a model. On the CPU alone there is nothing to choose.
func Choose(o Options, s Subject) (*Choice, error) {
	gpus, err := binding.FindDevices(o.Device)
	if err != nil {
		return nil, err
	}
	if gpus[0].IsCPU() {
		if o.GPULayers != "" && o.GPULayers != "auto" && o.GPULayers != "0" && o.Device != "cpu" {
			return nil, errors.New("gpu-layers: there is no GPU (--device cuda says why)")
		}
		return &Choice{Devices: gpus}, nil
	}
	if o.MainGPU < 0 || o.MainGPU >= len(gpus) {
		return nil, fmt.Errorf("main-gpu: %d, want 0 to %d", o.MainGPU, len(gpus)-1)
	}
	if len(o.TensorSplit) > len(gpus) {
		return nil, fmt.Errorf("tensor-split: %d shares for %d GPUs", len(o.TensorSplit), len(gpus))
	}
	p, err := newPlanning(o, s, gpus)
	if err != nil {
		return nil, err
	}
	return p.choose()
}
