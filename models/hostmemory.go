package models

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/machine"
)

// ReadAhead says when experts that are mapped are read from the disk as soon as they
// are chosen, and counted.
type ReadAhead int

// The zero value is ReadAheadAuto.
const (
	ReadAheadAuto ReadAhead = iota // if what is mapped is more than the available memory
	ReadAheadOn
	ReadAheadOff
)

// ParseReadAhead reads auto (or nothing), on or off.
func ParseReadAhead(s string) (ReadAhead, error) {
	switch s {
	case "", "auto":
		return ReadAheadAuto, nil
	case "on":
		return ReadAheadOn, nil
	case "off":
		return ReadAheadOff, nil
	}
	return 0, fmt.Errorf("%q, want auto, on or off", s)
}

// readAhead has what is mapped read ahead, if so many bytes want it.
func (p Params) readAhead(mapped int64) {
	mem, ok := machine.ReadMemory()
	if mapped > 0 && (p.ReadAhead == ReadAheadOn || p.ReadAhead == ReadAheadAuto && ok && mapped > mem.Available) {
		p.Backend.CountReads()
		slog.Info("experts are read ahead", "mapped", mapped, "available", mem.Available)
	}
}

// pinShare is the share of the available memory that may be pinned: pages that are
// pinned are taken from everything else for as long as the model is loaded.
const pinShare = 0.8

// pin locks the weights in host memory for the GPU that they are copied to. fits is
// false if there are none, no GPU, or more than the machine has room for: those come
// from the disk as they are used.
func (w *Weights) pin(be *binding.Backend) (fits bool) {
	if be.Parts()[0].Device().IsCPU() {
		return false
	}
	size := int64(0)
	for _, m := range w.mems {
		size += m.HostBytes()
	}
	if size == 0 {
		return false
	}
	if mem, ok := machine.ReadMemory(); ok && float64(size) > pinShare*float64(mem.Available) {
		slog.Info("weights in host memory are not pinned: too much of what is available", "bytes", size, "available", mem.Available)
		return false
	}
	start, pinned := time.Now(), int64(0)
	for _, m := range w.mems {
		pinned += m.Pin()
	}
	if pinned < size {
		slog.Info("weights in host memory are not all pinned: the driver refuses, or "+binding.NoPinVariable+" is set", "bytes", size, "pinned", pinned)
	} else {
		slog.Info("weights in host memory are pinned", "bytes", size, "seconds", time.Since(start).Seconds())
	}
	return true
}

// measureStreaming finds from how many rows on experts in host memory are computed
// on the GPU: the banks of all layers are taken to be like the first one.
func (w *Weights) measureStreaming(ws []wanted, f *gguf.File, p Params) error {
	arch, err := f.Str("general.architecture")
	if err != nil || p.Backend.Streaming() != nil {
		return err
	}
	used, err := f.UintOr(arch+".expert_used_count", 0)
	if err != nil {
		return err
	}
	for _, t := range ws {
		if !isExpert.MatchString(t.name) || !p.tensorDevice(t.name).Device().IsCPU() {
			continue
		}
		if used < 1 || int64(used) > (*t.field).Dim(2) {
			return nil // what the architecture says about it when it reads its keys
		}
		s, err := p.Backend.MeasureStreaming(*t.field, int(used))
		if err != nil {
			return fmt.Errorf("%s: tensor %q: %w", f.Path(), t.name, err)
		}
		slog.Info("experts in host memory", "link GB/s", s.Link/1e9, "CPU GB/s", s.CPU/1e9, "on the GPU from rows", s.Rows)
		return nil
	}
	return nil
}
