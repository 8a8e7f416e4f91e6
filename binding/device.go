package binding

// #include <stdlib.h>
// #include "bridge.h"
// #include "cpuops.h"
import "C"

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/ggml"
)

// Device is a piece of hardware that ggml can compute on.
type Device struct{ dev C.ggml_backend_dev_t }

// Devices lists what this build, the loaded modules and the machine offer, GPUs
// before the CPU.
func Devices() []Device {
	var gpus, cpus []Device
	for i := C.size_t(0); i < C.ggml_backend_dev_count(); i++ {
		switch d := (Device{C.ggml_backend_dev_get(i)}); d.Type() {
		case "cpu":
			cpus = append(cpus, d)
		case "gpu", "igpu":
			gpus = append(gpus, d)
		}
	}
	return append(gpus, cpus...)
}

// CPU returns the CPU device, which every build has.
func CPU() Device { return Device{C.ggml_backend_dev_by_type(C.GGML_BACKEND_DEVICE_TYPE_CPU)} }

// Name is ggml's short name of the device, such as CPU or CUDA0.
func (d Device) Name() string { return C.GoString(C.ggml_backend_dev_name(d.dev)) }

// Description is the hardware's own name.
func (d Device) Description() string { return C.GoString(C.ggml_backend_dev_description(d.dev)) }

// Family is the name without the number: CUDA, ROCm, Vulkan, Metal, CPU.
func (d Device) Family() string { return strings.TrimRight(d.Name(), "0123456789") }

// Type is cpu, gpu, igpu (a GPU in the host's memory) or accel (a helper of the CPU).
func (d Device) Type() string {
	switch C.ggml_backend_dev_type(d.dev) {
	case C.GGML_BACKEND_DEVICE_TYPE_CPU:
		return "cpu"
	case C.GGML_BACKEND_DEVICE_TYPE_GPU:
		return "gpu"
	case C.GGML_BACKEND_DEVICE_TYPE_IGPU:
		return "igpu"
	}
	return "accel"
}

// IsCPU reports whether the device is the CPU.
func (d Device) IsCPU() bool {
	return C.ggml_backend_dev_type(d.dev) == C.GGML_BACKEND_DEVICE_TYPE_CPU
}

// Memory returns the free and total bytes of the device.
func (d Device) Memory() (free, total int64) {
	var f, t C.size_t
	C.ggml_backend_dev_memory(d.dev, &f, &t)
	return int64(f), int64(t)
}

// Supports reports whether the device has a kernel for the node t.
func (d Device) Supports(t *Tensor) bool {
	if t.c().op == C.GGML_OP_CUSTOM {
		if d.IsCPU() { // whose own answer is yes to all
			return bool(C.inkling_cpu_computes(t.c()))
		}
		if !d.Fuses() || bool(C.inkling_cpu_computes(t.c())) {
			return false
		}
	}
	if !C.ggml_backend_dev_supports_op(d.dev, t.c()) {
		return false
	}
	if f := d.Family(); f == "CUDA" || f == "ROCm" { // what ggml's own answer forgets, and then aborts on
		switch t.c().op {
		case C.GGML_OP_SSM_CONV:
			k := wrap(t.c().src[1]).Dim(0)
			return k == 3 || k == 4
		case C.GGML_OP_CPY, C.GGML_OP_CONT, C.GGML_OP_DUP:
			const most = 1<<31 - 1 // its offsets are ints
			return wrap(t.c().src[0]).Bytes() <= most && t.Bytes() <= most
		case C.GGML_OP_CONCAT:
			return t.Type() == F32
		}
	}
	return true
}

// SpecError reports a spec of devices that makes no sense to this build, whatever
// the machine has.
type SpecError struct{ Spec, Reason string }

func (e *SpecError) Error() string { return fmt.Sprintf("device %q: %s", e.Spec, e.Reason) }

// FindDevices returns the devices that spec names, the main one first:
//
//	auto           the GPUs of the first family that has any, or the CPU
//	cpu            the CPU
//	cuda           all CUDA devices; likewise rocm, vulkan, metal
//	cuda:0,1       these CUDA devices; a number needs no family after the first
//
// Whatever is named and not there is an error, of type *MissingError if a whole
// family is missing, *SpecError if there is none of that name. Modules are loaded unless spec is cpu.
func FindDevices(spec string) ([]Device, error) {
	spec = strings.TrimSpace(spec)
	if strings.EqualFold(spec, "cpu") {
		return []Device{CPU()}, nil
	}
	missing := LoadModules()
	if spec == "" || strings.EqualFold(spec, "auto") {
		return automatic(), nil
	}
	var found []Device
	family := ""
	for item := range strings.SplitSeq(spec, ",") {
		name, number, numbered := strings.Cut(item, ":")
		if !numbered && name != "" && strings.Trim(name, "0123456789") == "" {
			name, number, numbered = family, name, true
		}
		family = name
		all := ofFamily(name)
		switch {
		case strings.EqualFold(name, "cpu") || name == "":
			return nil, &SpecError{spec, "want auto, cpu, or GPUs such as cuda:0,1"}
		case len(all) == 0:
			for f, m := range missing {
				if strings.EqualFold(f, name) {
					return nil, fmt.Errorf("device %q: %w", spec, m)
				}
			}
			return nil, &SpecError{spec, fmt.Sprintf("this build has no %s devices (%s)", name, deviceNames())}
		case !numbered:
			found = append(found, all...)
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n >= len(all) {
			return nil, fmt.Errorf("device %q: there is no %s:%s (%s)", spec, strings.ToLower(name), number, deviceNames())
		}
		found = append(found, all[n])
	}
	for i, d := range found {
		for _, o := range found[:i] {
			if o == d {
				return nil, &SpecError{spec, d.Name() + " is named twice"}
			}
		}
	}
	return found, nil
}

// automatic takes GPUs of their own before those in the host's memory.
func automatic() []Device {
	all := Devices()
	for _, typ := range []string{"gpu", "igpu"} {
		for _, d := range all {
			if d.Type() == typ {
				return ofFamily(d.Family())
			}
		}
	}
	return []Device{CPU()}
}

func ofFamily(name string) []Device {
	var ds []Device
	for _, d := range Devices() {
		if strings.EqualFold(d.Family(), name) {
			ds = append(ds, d)
		}
	}
	return ds
}

// deviceNames is for messages.
func deviceNames() string {
	var names []string
	for _, d := range Devices() {
		names = append(names, fmt.Sprintf("%s: %s", d.Name(), d.Description()))
	}
	return strings.Join(names, "; ")
}

// Features lists the SIMD extensions that the CPU kernels were compiled with.
func Features() []string { return ggml.Features() }

// Warning is a line for the user when the CPU kernels were compiled without SIMD, else empty.
func Warning() string { return ggml.Warning() }

// Source says where this build's ggml comes from.
func Source() string { return ggml.Source }
