package convert

import (
	"github.com/inkling-go/inkling/convert/quantin"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// Plan is what a checkpoint becomes.
type Plan struct {
	Files []File   // in the order of writing
	Notes []string // what the user should know: parts left out, odd settings
}

// Kind is the role of an output file.
type Kind string

// The kinds of output files.
const (
	Text   Kind = "text"   // the language model
	MMProj Kind = "mmproj" // the towers for images and sound
	MTP    Kind = "mtp"    // the layers for multi-token prediction
)

// stem returns the name of a file of this kind for a model and output type, as
// llama.cpp's tools name it, without its extension.
func (k Kind) stem(model, outtype string) string {
	name := model + "-" + outtype
	if k == Text {
		return name
	}
	return string(k) + "-" + name
}

// File is one output file.
type File struct {
	Kind    Kind
	Arch    string // general.architecture
	KV      []KV   // all keys but general.*
	Tensors []Tensor
}

// KV is a metadata key and its value, of a type that gguf.Writer.Set takes.
type KV struct {
	Key   string
	Value any
}

// Tensor is a tensor of an output file and the checkpoint rows that it is made of.
type Tensor struct {
	Name  string
	Dims  []int64 // ggml order, ne0 (the row) first
	F32   bool    // stays F32 whatever the output type
	Parts []Part  // one after the other; experts that are tensors of their own make one part each

	// Literal has the values of a tensor that is of no checkpoint tensor. There are
	// no parts then, and the type is F32.
	Literal []float32
}

// Part is a run of rows of an output tensor and where the checkpoint has them. The
// rows of a vector are its elements.
type Part struct {
	N    int64              // rows of the output
	From safetensors.Tensor // the numbers, or the codes
	Rows RowMap

	// Weights are what the codes and their scales stand for; nil if From is numbers.
	Weights *quantin.Weights

	// Transposed: the rows of the output are the N columns of the ne0 checkpoint
	// rows from Rows.First on.
	Transposed bool
}

// dtype returns the type of the checkpoint's weights; false if the parts differ.
func (t Tensor) dtype() (safetensors.DType, bool) {
	if t.Parts == nil {
		return safetensors.F32, true
	}
	d := t.Parts[0].From.DType
	for _, p := range t.Parts {
		if p.From.DType != d {
			return "", false
		}
	}
	return d, true
}

// Elems returns the number of elements.
func (t Tensor) Elems() int64 { return product(t.Dims) }

// RowMap says which rows of a checkpoint tensor make up an output tensor. The
// checkpoint tensor is a stack of slabs (experts) of Slab rows; the output takes
// Count rows of each: First, First+Step, First+2·Step, … The zero value is all
// rows in their order.
type RowMap struct {
	Slab, Count, First, Step int64
}

// Interleaved returns the maps of the gate and up rows in a stack of matrices that
// hold n of each by turns: gate 0, up 0, gate 1, up 1, …
func Interleaved(n int64) (gate, up RowMap) {
	return RowMap{Slab: 2 * n, Count: n, First: 0, Step: 2},
		RowMap{Slab: 2 * n, Count: n, First: 1, Step: 2}
}

// Blocked returns the maps of the gate and up rows in a stack of matrices that
// hold first n gate rows and then n up rows.
func Blocked(n int64) (gate, up RowMap) {
	return RowMap{Slab: 2 * n, Count: n, First: 0, Step: 1},
		RowMap{Slab: 2 * n, Count: n, First: n, Step: 1}
}

// Slice returns the map of the n rows from first on.
func Slice(first, n int64) RowMap { return RowMap{Slab: n, Count: n, First: first, Step: 1} }

// source returns the checkpoint row that output row r is.
func (m RowMap) source(r int64) int64 {
	if m == (RowMap{}) {
		return r
	}
	return r/m.Count*m.Slab + m.First + r%m.Count*m.Step
}

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}
