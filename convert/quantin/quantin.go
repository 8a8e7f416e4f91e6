// Package quantin reads the weights of checkpoints that are quantised: it finds the
// codes and scales that belong together and gives the weights that they stand for.
//
// Each layout is known by the names of its tensors. B is a tensor's name without
// suffix; the blocks run along the last axis, which is the input axis of a matrix.
//
//	NVFP4, ModelOpt              B u8, B.scale E4M3, B.scale2 F32
//	NVFP4, ModelOpt, per linear  B.weight u8, B.weight_scale E4M3, B.weight_scale_2 F32
//	NVFP4, compressed-tensors    B.weight_packed u8, B.weight_scale E4M3, B.weight_global_scale F32 (a divisor)
//	FP8 in blocks                B E4M3, B_scale_inv or B_scale (a factor in both cases)
//	MLX affine                   B.weight u32, B.scales, B.biases
//	INT4, compressed-tensors     B.weight_packed i32, B.weight_scale, B.weight_shape
package quantin

import (
	"fmt"
	"maps"
	"slices"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// Format is how weights are stored.
type Format string

// The formats.
const (
	Plain  Format = "plain" // numbers
	NVFP4  Format = "nvfp4"
	FP8    Format = "fp8"
	Affine Format = "affine" // of MLX
	INT4   Format = "int4"
	Drawn  Format = "drawn" // not stored but made up, see [Draw]
)

// Weights is a tensor as the model uses it, whatever it is stored as. Its rows are
// those of a matrix, or of a stack of matrices one after the other.
type Weights struct {
	Name   string  // without the suffixes of codes and scales
	Shape  []int64 // of the weights, row-major
	Format Format
	Parts  []safetensors.Tensor // what is stored: the numbers or codes first, then scales
	Bits   int                  // of a weight, without its share of the scales

	codec codec // nil if plain
}

// codec gives the rows of one format.
type codec interface {
	// decode writes the weights of row to dst, which has the length of a row.
	decode(dst []float32, row int64)
}

// repacker is a codec whose codes some GGUF type can hold as they are.
type repacker interface {
	codec
	// packs returns the type.
	packs() gguf.Type
	// repack writes a row in that type. It reports false if the row's scales do not
	// fit; what dst holds then does not matter.
	repack(dst []byte, row int64) bool
}

// Cols returns the length of a row, which is 1 for a scalar.
func (w *Weights) Cols() int64 {
	if len(w.Shape) == 0 {
		return 1
	}
	return w.Shape[len(w.Shape)-1]
}

// Rows returns how many rows there are.
func (w *Weights) Rows() int64 { return elems(w.Shape) / max(1, w.Cols()) }

// Decode writes rows [row, row+len(dst)/Cols) to dst. The weights must not be plain.
func (w *Weights) Decode(dst []float32, row int64) {
	for cols := w.Cols(); len(dst) > 0; dst = dst[cols:] {
		w.codec.decode(dst[:cols], row)
		row++
	}
}

// Packs returns the GGUF type that holds the same codes and scales; ok is false if
// there is none.
func (w *Weights) Packs() (t gguf.Type, ok bool) {
	if r, is := w.codec.(repacker); is {
		return r.packs(), true
	}
	return 0, false
}

// Repack writes one row in the type that Packs returned, without any rounding. It
// reports false if a scale of the row does not fit that type.
func (w *Weights) Repack(dst []byte, row int64) bool { return w.codec.(repacker).repack(dst, row) }

// Bytes returns the size of what is stored.
func (w *Weights) Bytes() int64 {
	var n int64
	for _, p := range w.Parts {
		n += p.Size
	}
	return n
}

// Config is what a checkpoint's config says about its quantisation and the tensors
// do not.
type Config struct {
	Block  [2]int64           // rows and columns of an FP8 block; 0 if not given
	Affine Affined            // MLX's default
	Paths  map[string]Affined // MLX's settings of single modules, by their path
}

// Affined are MLX's settings: bits of a code and codes of a group; zero if not given.
type Affined struct{ Bits, Group int64 }

// Set is the weights of a checkpoint.
type Set struct {
	names  []string // in the order of the first parts in the files
	byName map[string]*Weights
}

// Names returns the names of all weights in the order of the files.
func (s *Set) Names() []string { return slices.Clone(s.names) }

// Find returns the weights called name.
func (s *Set) Find(name string) (*Weights, bool) {
	w, ok := s.byName[name]
	return w, ok
}

// Formats counts the weights that are not plain, by format.
func (s *Set) Formats() map[Format]int {
	n := make(map[Format]int)
	for _, w := range s.byName {
		if w.Format != Plain {
			n[w.Format]++
		}
	}
	return n
}

// Error reports tensors that look quantised but do not fit together.
type Error struct {
	Tensor string // the codes
	Msg    string // what is wrong, lower case, no full stop
}

// Error returns the tensor's name and the message.
func (e *Error) Error() string { return fmt.Sprintf("tensor %s: %s", e.Tensor, e.Msg) }

func errorf(tensor, format string, args ...any) error {
	return &Error{tensor, fmt.Sprintf(format, args...)}
}

// Open groups the tensors of a checkpoint. It reads no weights but the scales of
// whole tensors. Tensors that do not fit together are an [Error].
func Open(ckpt *safetensors.Checkpoint, c Config) (*Set, error) {
	o := &opener{ckpt: ckpt, config: c, part: make(map[string]bool), set: &Set{byName: make(map[string]*Weights)}}
	names := ckpt.Names()
	for _, name := range names {
		if err := o.quantised(name); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if o.part[name] {
			continue
		}
		x, _ := ckpt.Tensor(name)
		o.add(&Weights{Name: name, Shape: x.Shape, Format: Plain, Parts: []safetensors.Tensor{x}, Bits: x.DType.Bits()})
	}
	order := make(map[string]int, len(names))
	for i, name := range names {
		order[name] = i
	}
	o.set.names = slices.SortedFunc(maps.Keys(o.set.byName), func(a, b string) int {
		return order[o.set.byName[a].Parts[0].Name] - order[o.set.byName[b].Parts[0].Name]
	})
	return o.set, o.err
}

// opener is the state of Open.
type opener struct {
	ckpt   *safetensors.Checkpoint
	config Config
	set    *Set
	part   map[string]bool // tensors that belong to quantised weights
	err    error           // the first
}

func (o *opener) add(w *Weights) {
	if other, dup := o.set.byName[w.Name]; dup && o.err == nil {
		o.err = errorf(w.Parts[0].Name, "weights %s are also stored as %s", w.Name, other.Parts[0].Name)
	}
	o.set.byName[w.Name] = w
	if w.Format != Plain {
		for _, p := range w.Parts {
			o.part[p.Name] = true
		}
	}
}

// drop marks companions that say nothing about the weights: the ranges of
// activations, and shapes that the codes have anyway.
func (o *opener) drop(names ...string) {
	for _, name := range names {
		o.part[name] = true
	}
}

// companion returns the first of the tensors that is there.
func (o *opener) companion(names ...string) (safetensors.Tensor, bool) {
	for _, name := range names {
		if x, ok := o.ckpt.Tensor(name); ok {
			return x, true
		}
	}
	return safetensors.Tensor{}, false
}

// floats reads a small tensor of scales.
func (o *opener) floats(x safetensors.Tensor, limit int64) ([]float32, error) {
	if x.Elems() > limit {
		return nil, errorf(x.Name, "%d scales, want at most %d", x.Elems(), limit)
	}
	v, err := o.ckpt.Floats(x)
	if err != nil {
		return nil, errorf(x.Name, "is %s, want floats", x.DType)
	}
	return v, nil
}

func elems(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// widened returns a copy of a shape with its last axis times num, divided by den.
func widened(shape []int64, num, den int64) []int64 {
	s := slices.Clone(shape)
	s[len(s)-1] = s[len(s)-1] * num / den
	return s
}
