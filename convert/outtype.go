package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert/quantin"
	"github.com/inkling-go/inkling/internal/gguf"
)

// OutType is the type that the weights of the outputs get, those aside that stay
// F32. Some are mixes: see [RecipeFor].
type OutType string

// The output types.
const (
	OutAuto    OutType = "auto" // each tensor as it came, or what is nearest to that
	OutF32     OutType = "f32"
	OutF16     OutType = "f16"
	OutBF16    OutType = "bf16"
	OutQ8_0    OutType = "q8_0"
	OutQ6_K    OutType = "q6_k"
	OutQ5_K_M  OutType = "q5_k_m"
	OutQ4_K_M  OutType = "q4_k_m"
	OutQ4_0    OutType = "q4_0"
	OutQ3_K_M  OutType = "q3_k_m"
	OutQ2_K    OutType = "q2_k"
	OutIQ4_XS  OutType = "iq4_xs"
	OutIQ3_XXS OutType = "iq3_xxs"
	OutMXFP4   OutType = "mxfp4" // the experts; the rest is q8_0
	OutNVFP4   OutType = "nvfp4" // the experts; the rest is bf16
)

// OutTypes lists all output types.
func OutTypes() []OutType {
	return []OutType{
		OutF32, OutF16, OutBF16, OutQ8_0, OutQ6_K, OutQ5_K_M, OutQ4_K_M, OutQ4_0, OutQ3_K_M, OutQ2_K,
		OutIQ4_XS, OutIQ3_XXS, OutMXFP4, OutNVFP4, OutAuto,
	}
}

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

// encodes reports whether weights can be converted to a type.
func encodes(t gguf.Type) bool { return ours(t) || binding.DType(t).Quantisable() }

// fileTypes has general.file_type by the type of most weights (enum llama_ftype). Of
// K-quants it is the medium mix.
var fileTypes = map[gguf.Type]uint32{
	gguf.F32: 0, gguf.F16: 1, gguf.Q4_0: 2, gguf.Q4_1: 3, gguf.Q8_0: 7, gguf.Q5_0: 8, gguf.Q5_1: 9,
	gguf.Q2_K: 10, gguf.Q3_K: 12, gguf.Q4_K: 15, gguf.Q5_K: 17, gguf.Q6_K: 18,
	gguf.IQ2_XXS: 19, gguf.IQ2_XS: 20, gguf.IQ3_XXS: 23, gguf.IQ1_S: 24, gguf.IQ4_NL: 25, gguf.IQ3_S: 26,
	gguf.IQ2_S: 28, gguf.IQ4_XS: 30, gguf.IQ1_M: 31, gguf.BF16: 32, gguf.TQ1_0: 36, gguf.TQ2_0: 37,
	gguf.MXFP4: 38, gguf.NVFP4: 39,
}

// keepsF32 reports whether a tensor stays F32 whatever the output type: those
// whose precision matters and whose size does not, which are vectors, norms, and
// what the architecture marks. The rule is that of llama.cpp's converter.
func (t Tensor) keepsF32() bool {
	return t.F32 || len(t.Dims) < 2 ||
		strings.HasSuffix(t.Name, "_norm.weight") || !strings.HasSuffix(t.Name, ".weight")
}

// towerType returns what an output type means for the towers, which are small and
// not quantised below eight bits.
func (o OutType) towerType() OutType {
	if slices.Contains([]OutType{OutF32, OutF16, OutBF16, OutQ8_0}, o) {
		return o
	}
	return OutAuto
}

// autoType returns the type that keeps a tensor's weights as they came, or that is
// nearest to it in bits.
func (t Tensor) autoType() gguf.Type {
	var weights *quantin.Weights
	for _, p := range t.Parts {
		if p.Weights != nil {
			weights = p.Weights
		}
	}
	if weights == nil {
		if d, ok := t.dtype(); ok {
			if same, ok := storedAs(d); ok {
				return same
			}
		}
		return gguf.F32
	}
	for _, p := range t.Parts {
		if p.Weights == nil || p.Weights.Format != weights.Format || p.Weights.Bits != weights.Bits {
			return gguf.Q8_0
		}
	}
	switch {
	case weights.Format == quantin.Drawn:
		return gguf.BF16
	case weights.Format == quantin.NVFP4:
		return gguf.Q4_K // 4.5 bits both; see docs/gguf-keys.md for the errors
	case weights.Bits == 4:
		packs, _ := weights.Packs()
		return packs
	}
	return gguf.Q8_0
}

// fitting returns the type to use in place of t for rows of ne0 weights, which are no
// multiple of its block.
//
// Source: the fallbacks of llama-quant.cpp; rows that not even blocks of 32 fit are F16.
func fitting(t gguf.Type, ne0 int64) gguf.Type {
	if block, _ := t.Block(); ne0%block == 0 {
		return t
	}
	const block = 32
	if ne0%block != 0 {
		return gguf.F16
	}
	switch t {
	case gguf.Q4_K:
		return gguf.Q5_0
	case gguf.Q5_K:
		return gguf.Q5_1
	case gguf.Q6_K, gguf.NVFP4:
		return gguf.Q8_0
	}
	return gguf.IQ4_NL
}
