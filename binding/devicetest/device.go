//go:build !ggml_dir

package devicetest

// The device implements an interface of the pinned ggml that is not public.

// #cgo CFLAGS: -I${SRCDIR}/../../build/include -I${SRCDIR}/../../build/include/../src
// #cgo CFLAGS: -I${SRCDIR}/../../../../ollama/ollama@v0.24.0/ml/backend/ggml/ggml/include -I${SRCDIR}/../../../../ollama/ollama@v0.24.0/ml/backend/ggml/ggml/src
// #include "device.h"
import "C"

import "github.com/inkling-go/inkling/binding"

// Counts is what a device was asked for.
type Counts struct {
	Graphs int // computed
	Reads  int // of its memory
	Writes int // to its memory
	Early  int // reads and writes while a graph waited to be computed: what they saw or changed is that graph's
}

// Device returns the device, which binding.Devices lists from then on.
func Device() binding.Device {
	C.devicetest_register()
	for _, d := range binding.Devices() {
		if d.Name() == "TEST0" {
			return d
		}
	}
	panic("devicetest: ggml does not list a device that was registered")
}

// Take returns the numbers since it was called last.
func Take() Counts {
	c := C.devicetest_take()
	return Counts{int(c.graphs), int(c.reads), int(c.writes), int(c.early)}
}
