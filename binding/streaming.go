package binding

// #include "bridge.h"
import "C"

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Streaming compares the two ways to multiply rows by experts in host memory: on the
// CPU, or on the GPU, to which the chosen experts are copied first.
type Streaming struct {
	Link float64 `json:"link"` // bytes a second from there to the GPU
	CPU  float64 `json:"cpu"`  // bytes a second of weights that the CPU multiplies by one row
	Rows int     `json:"rows"` // the least number of rows of a step that the GPU takes, 0: it never does
}

// Of a measurement: the rows whose products are timed, how often, and the most bytes
// that are copied.
const (
	streamedRows   = DefaultStreamRows
	streamedRounds = 3
	streamedBytes  = 256 << 20
	mostStreamRows = 1 << 16 // no step has more
)

// MeasureStreaming measures both ways for steps that choose used experts a row of
// banks like bank, and sets StreamRows. bank lies in host memory beside a GPU.
func (b *Backend) MeasureStreaming(bank *Tensor, used int) (*Streaming, error) {
	s := &Streaming{}
	var err error
	if s.Link, err = b.home().measureLink(bank); err != nil {
		return nil, err
	}
	if s.CPU, err = b.host().measureExperts(bank, used); err != nil {
		return nil, err
	}
	s.Rows = streamFrom(s.Link, s.CPU, int(bank.Dim(2)), used)
	b.streaming, b.stream = s, s.Rows
	if s.Rows == 0 {
		b.stream = math.MaxInt32
	}
	return s, nil
}

// Streaming is what MeasureStreaming found, nil before.
func (b *Backend) Streaming() *Streaming { return b.streaming }

// streamFrom is the least number of rows, at least DefaultStreamRows, for which the
// copy of all experts that any of them chooses takes no longer than the products of
// each with its own. Of n experts, rows that choose k each choose
// n(1 - (1-k/n)^rows) different ones.
func streamFrom(link, cpu float64, n, k int) int {
	for rows := DefaultStreamRows; rows <= mostStreamRows; rows++ {
		different := float64(n) * (1 - math.Pow(1-float64(k)/float64(n), float64(rows)))
		if different/link <= float64(rows*k)/cpu {
			return rows
		}
	}
	return 0
}

// measureLink copies a part of a tensor in host memory to the device.
func (b *Backend) measureLink(from *Tensor) (float64, error) {
	n := min(from.Bytes(), streamedBytes) / 4 * 4
	mem := b.NewMemory(1)
	defer mem.Close()
	to, err := mem.New("copy", F32, n/4)
	if err != nil {
		return 0, err
	}
	if err := mem.Alloc(); err != nil {
		return 0, err
	}
	best := math.Inf(1)
	for range streamedRounds {
		start := time.Now()
		C.ggml_backend_tensor_set(to.c(), from.c().data, 0, C.size_t(n))
		best = min(best, time.Since(start).Seconds())
	}
	return float64(n) / best, nil
}

// measureExperts multiplies streamedRows rows by the experts that each draws.
func (b *Backend) measureExperts(bank *Tensor, used int) (float64, error) {
	n := int(bank.Dim(2))
	if used < 1 || used > n {
		return 0, fmt.Errorf("%d of %d experts used", used, n)
	}
	g := b.NewGraph(8)
	defer g.Close()
	var x, ids *Tensor
	products := streamedRows * used
	if g.multiplies(bank) { // as Experts: an expert's rows together
		experts := min(n, products)
		rows := (products + experts - 1) / experts
		products = experts * rows
		x = g.Input("x", F32, bank.Dim(0), int64(rows), int64(experts))
		g.Output(g.MulMat(g.View(bank, [4]int64{bank.Dim(0), bank.Dim(1), int64(experts), 1}, bank.Stride(1), bank.Stride(2), bank.Stride(2), 0), x))
	} else {
		x = g.Input("x", F32, bank.Dim(0), 1, streamedRows)
		ids = g.Input("ids", I32, int64(used), streamedRows)
		g.Output(g.MulMatID(bank, x, ids))
	}
	a := b.NewAllocator()
	defer a.Close()
	if err := g.Alloc(a); err != nil {
		return 0, err
	}
	x.SetFloats(make([]float32, x.Elems()))
	rng := rand.New(rand.NewPCG(0, 0))
	best := math.Inf(1)
	for range streamedRounds {
		if ids != nil {
			ids.SetInt32s(draw(rng, n, used, streamedRows))
		}
		start := time.Now()
		if err := g.Compute(); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start).Seconds())
	}
	return float64(products) * float64(bank.Stride(2)) / best, nil
}
