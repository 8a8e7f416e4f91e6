package convert

import (
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/convert/quantin"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// Matcher pairs the tensors that an architecture wants with those of a
// checkpoint. It collects everything that is wrong, so that a user sees all of it
// at once, in [Matcher.Err].
type Matcher struct {
	src     *Source
	used    map[string]bool
	missing []string
	shapes  []string
	err     error // of a tensor that is there but not for us
}

// NewMatcher returns a Matcher over the tensors of a checkpoint.
func NewMatcher(src *Source) *Matcher {
	return &Matcher{src: src, used: make(map[string]bool)}
}

// Spelling is a form in which a wanted tensor may be stored.
type Spelling struct {
	Name  string  // in the checkpoint
	Shape []int64 // there, row-major
	Rows  RowMap  // rows to take, all if zero

	Transposed bool // see Part
}

// Find looks up a tensor that is made of one of the checkpoint: the one for the
// output under the given name and dims (ggml order). The spellings are those of
// [Matcher.Part].
func (m *Matcher) Find(name string, dims []int64, spellings ...Spelling) Tensor {
	return Tensor{Name: name, Dims: dims, Parts: []Part{m.Part(rowsOf(dims), spellings...)}}
}

// rowsOf returns the number of rows that a tensor's parts have in all.
func rowsOf(dims []int64) int64 {
	if len(dims) == 1 {
		return dims[0]
	}
	return product(dims[1:])
}

// Part looks up the first of the spellings that the checkpoint has and returns it
// as n rows of an output tensor. Quantised weights go by the name and the shape that
// they would have as numbers. The first spelling is the one that is called
// missing if there is none. Axes of length 1 do not matter: they do not move any
// element.
func (m *Matcher) Part(n int64, spellings ...Spelling) Part {
	if d := m.src.drawn; d != nil {
		return d.part(n, spellings[0])
	}
	for _, s := range spellings {
		from, ok := m.src.Weights.Find(s.Name)
		if !ok {
			continue
		}
		m.used[s.Name] = true
		p := Part{N: n, From: from.Parts[0], Rows: s.Rows, Transposed: s.Transposed}
		switch {
		case from.Format != quantin.Plain:
			p.Weights = from
		case !isFloat(p.From.DType):
			m.refuse(p.From)
			return p
		}
		if !slices.Equal(squeeze(from.Shape), squeeze(s.Shape)) {
			m.shapes = addOnce(m.shapes, fmt.Sprintf("%s %v, want %v", s.Name, from.Shape, s.Shape))
		}
		return p
	}
	m.missing = addOnce(m.missing, spellings[0].Name)
	return Part{N: n}
}

// addOnce appends s unless it is the last entry: gate and up rows of one tensor
// are looked up one after the other.
func addOnce(list []string, s string) []string {
	if n := len(list); n > 0 && list[n-1] == s {
		return list
	}
	return append(list, s)
}

// refuse records a tensor of a type that is not converted.
func (m *Matcher) refuse(t safetensors.Tensor) {
	if m.err == nil {
		m.err = &UnsupportedError{m.src.Dir, fmt.Sprintf(
			"tensor %s is %s; weights are read as F32, F16, BF16 and F64", t.Name, t.DType)}
	}
}

// Skip marks a tensor as known and not wanted.
func (m *Matcher) Skip(name string) { m.used[name] = true }

// Err returns what is wrong with the tensors asked for so far, and with those of
// the checkpoint that nobody asked for: a [TensorsError] or an [UnsupportedError].
func (m *Matcher) Err() error {
	if m.err != nil {
		return m.err
	}
	var unknown []string
	for _, name := range m.src.Weights.Names() {
		if !m.used[name] {
			unknown = append(unknown, name)
		}
	}
	if len(m.shapes)+len(m.missing)+len(unknown) == 0 {
		return nil
	}
	return &TensorsError{Dir: m.src.Dir, Missing: m.missing, Unknown: unknown, Shapes: m.shapes}
}

// squeeze returns a shape without its axes of length 1.
func squeeze(shape []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(shape), func(n int64) bool { return n == 1 })
}

// isFloat reports whether weights of the type can be converted.
func isFloat(d safetensors.DType) bool {
	_, ok := floatLanes[d]
	return ok
}
