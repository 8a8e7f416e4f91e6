package convert

import (
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/gguf"
)

// OutType is the type that the weights of the outputs get, those aside that stay
// F32.
type OutType string

// The output types.
const (
	OutAuto OutType = "auto" // each tensor as it came
	OutF32  OutType = "f32"
	OutF16  OutType = "f16"
	OutBF16 OutType = "bf16"
	OutQ8_0 OutType = "q8_0"
)

// OutTypes lists all output types.
func OutTypes() []OutType { return []OutType{OutF32, OutF16, OutBF16, OutQ8_0, OutAuto} }

// ParseOutType returns the output type called s; letter case does not matter.
func ParseOutType(s string) (OutType, error) {
	var names []string
	for _, o := range OutTypes() {
		if strings.EqualFold(s, string(o)) {
			return o, nil
		}
		names = append(names, string(o))
	}
	return "", fmt.Errorf("output type %q, want one of %s", s, strings.Join(names, ", "))
}

// fileType returns the type that a file is called after, given how many elements
// of each type follow the output type: the one asked for, or with OutAuto the one
// that most elements have.
func (o OutType) fileType(share map[gguf.Type]int64) gguf.Type {
	switch o {
	case OutF16:
		return gguf.F16
	case OutBF16:
		return gguf.BF16
	case OutQ8_0:
		return gguf.Q8_0
	}
	most := gguf.F32
	for _, t := range []gguf.Type{gguf.F16, gguf.BF16} {
		if share[t] > share[most] {
			most = t
		}
	}
	return most
}

// fileTypes has general.file_type by the type of most weights (enum llama_ftype).
var fileTypes = map[gguf.Type]uint32{gguf.F32: 0, gguf.F16: 1, gguf.Q8_0: 7, gguf.BF16: 32}

// keepsF32 reports whether a tensor stays F32 whatever the output type: those
// whose precision matters and whose size does not, which are vectors, norms, and
// what the architecture marks. The rule is that of llama.cpp's converter.
func (t Tensor) keepsF32() bool {
	return t.F32 || len(t.Dims) < 2 ||
		strings.HasSuffix(t.Name, "_norm.weight") || !strings.HasSuffix(t.Name, ".weight")
}

// tensorType returns the type that a tensor is written in. Rows that are no
// multiple of Q8_0's block become F16.
func (o OutType) tensorType(t Tensor) gguf.Type {
	if t.keepsF32() {
		return gguf.F32
	}
	switch o {
	case OutAuto:
		if d, ok := t.dtype(); ok {
			if same, ok := storedAs(d); ok {
				return same
			}
		}
	case OutF16:
		return gguf.F16
	case OutBF16:
		return gguf.BF16
	case OutQ8_0:
		if block, _ := gguf.Q8_0.Block(); t.Dims[0]%block != 0 {
			return gguf.F16
		}
		return gguf.Q8_0
	}
	return gguf.F32
}
