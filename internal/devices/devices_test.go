package devices

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestPlace lays 6 layers out; device 0 and 1 stand for GPUs, the last for the CPU.
func TestPlace(t *testing.T) {
	one, two := []float64{1}, []float64{3, 1}
	for _, tc := range []struct {
		name   string
		split  []float64
		l      layout
		layers []int
		output int
		host   int
	}{
		{"all on one", one, layout{1, 7, 0}, []int{0, 0, 0, 0, 0, 0}, 0, 0},
		{"no output", one, layout{1, 6, 0}, []int{0, 0, 0, 0, 0, 0}, 1, 0},
		{"the last two", one, layout{1, 2, 0}, []int{1, 1, 1, 1, 0, 0}, 1, 0},
		{"none", one, layout{1, 0, 0}, []int{1, 1, 1, 1, 1, 1}, 1, 0},
		{"three to one", two, layout{2, 7, 0}, []int{0, 0, 0, 0, 0, 1}, 1, 0},
		{"three to one, the last four", two, layout{2, 4, 0}, []int{2, 2, 0, 0, 0, 1}, 2, 0},
		{"experts of two in host memory", one, layout{1, 7, 2}, []int{0, 0, 0, 0, 0, 0}, 0, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &planning{layers: 6, split: tc.split, gpus: slices.Repeat([]binding.Device{binding.CPU()}, len(tc.split)), embd: binding.F16, nEmbd: 256}
			devs, place, err := p.place(tc.l)
			if err != nil {
				t.Fatal(err)
			}
			if len(devs) != tc.l.gpus+1 || !slices.Equal(place.Layers, tc.layers) || place.Output != tc.output || place.HostExperts != tc.host {
				t.Errorf("%d devices, layers %v, output %d, experts of %d in host memory; want %d, %v, %d, %d",
					len(devs), place.Layers, place.Output, place.HostExperts, tc.l.gpus+1, tc.layers, tc.output, tc.host)
			}
			if want := len(devs) - 1; tc.l.ngl <= p.layers && place.Embedding != want {
				t.Errorf("embeddings on device %d, want the CPU, %d", place.Embedding, want)
			}
		})
	}
}

// TestOverrides: tensors are placed by the first pattern that matches.
func TestOverrides(t *testing.T) {
	p := &planning{layers: 2, split: []float64{1}, gpus: []binding.Device{binding.CPU()}}
	p.Overrides = []Override{{`ffn_.*_exps`, "cpu"}}
	_, place, err := p.place(layout{1, 3, 0})
	if err != nil || len(place.Overrides) != 1 || !place.Overrides[0].Pattern.MatchString("blk.1.ffn_up_exps.weight") {
		t.Fatalf("%v, %+v", err, place.Overrides)
	}
	for _, tc := range []struct {
		o    Override
		want string
	}{{Override{"(", "cpu"}, "override-tensor"}, {Override{"x", "cuda:7"}, `no device "cuda:7", want one of CPU`}} {
		p.Overrides = []Override{tc.o}
		if _, _, err := p.place(layout{1, 3, 0}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v, want %q in it", tc.o, err, tc.want)
		}
	}
}

// TestSimplify: a layout that comes down to one device is computed on it alone.
func TestSimplify(t *testing.T) {
	for _, tc := range []struct {
		name   string
		split  []float64
		l      layout
		single bool
	}{
		{"all on one GPU", []float64{1}, layout{1, 7, 0}, true},
		{"nothing on the GPU", []float64{1}, layout{1, 0, 0}, true},
		{"some layers", []float64{1}, layout{1, 3, 0}, false},
		{"experts in host memory", []float64{1}, layout{1, 7, 1}, false},
		{"two GPUs", []float64{1, 1}, layout{2, 7, 0}, false},
	} {
		p := &planning{layers: 6, split: tc.split, gpus: slices.Repeat([]binding.Device{binding.CPU()}, len(tc.split)), embd: binding.F16, nEmbd: 256}
		devs, place, err := p.place(tc.l)
		if err != nil {
			t.Fatal(err)
		}
		c := &Choice{Devices: devs, Place: place, Needs: make([]Need, len(devs))}
		c.simplify()
		if got := len(c.Devices) == 1; got != tc.single || got && len(c.Place.Layers) > 0 {
			t.Errorf("%s: %d devices, place %+v", tc.name, len(c.Devices), c.Place)
		}
	}
}

// TestChooseWithoutGPU: the CPU is taken as it is, and GPU options say why not.
func TestChooseWithoutGPU(t *testing.T) {
	t.Setenv(binding.BackendsVariable, t.TempDir())
	c, err := Choose(Options{}, Subject{})
	if err != nil || len(c.Devices) != 1 || !c.Devices[0].IsCPU() || c.String() != "CPU" {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := Choose(Options{GPULayers: "all"}, Subject{}); err == nil || !strings.Contains(err.Error(), "no GPU") {
		t.Errorf("all layers on no GPU: %v", err)
	}
	var missing *binding.MissingError
	if _, err := Choose(Options{Device: "cuda"}, Subject{}); !errors.As(err, &missing) {
		t.Errorf("cuda: %v", err)
	}
}

// TestTooLarge: the message has the numbers, and callers can tell.
func TestTooLarge(t *testing.T) {
	err := error(&TooLargeError{Model: "m.gguf", Need: Need{Device: binding.CPU(), Memory: 3 << 30, Compute: 512 << 20, Free: 2 << 30}, Why: "--ctx-size takes less"})
	const want = "m.gguf: CPU needs 3.5 GiB (3.0 GiB of weights and caches, 512.0 MiB of intermediate results), 2.0 GiB are free: --ctx-size takes less"
	if err.Error() != want || !errors.Is(err, binding.ErrOutOfMemory) {
		t.Errorf("%q, want %q", err, want)
	}
}

// TestMoreMemory: where the system holds memory back, its setting is named with a
// value that is enough; macOS ends what takes more.
func TestMoreMemory(t *testing.T) {
	for family, want := range map[string]string{
		"Metal": "iogpu.wired_limit_mb=113664 ", "MTL": "iogpu.wired_limit_mb=113664 ", // 110 GiB and one more
		"CUDA": "", "CPU": "",
	} {
		if got := moreMemory(family, 110<<30); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", family, got, want)
		}
	}
}
