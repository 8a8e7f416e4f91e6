package convert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/internal/gguf"
)

// nvfp4Factor is what weights are divided by before they become NVFP4, where they do
// not come with a factor of their own. The scales of groups, E4M3 numbers, are then
// normal numbers for groups whose largest weight is between 0.0001 and 2.6, so that
// no pass over the tensor is needed to find its range. A power of two: it rounds
// nothing.
const nvfp4Factor = 1.0 / 1024

// factored gives an NVFP4 tensor its factors and returns the tensor that holds them,
// NAME.scale: one number, or one for each expert.
func (o *target) factored() (*target, error) {
	n := int64(1)
	if len(o.Dims) == 3 {
		n = o.Dims[2]
	}
	var factors []float32
	rows := o.rows / n // of a factor
	for _, p := range o.Parts {
		own := []float32{nvfp4Factor}
		if p.Weights != nil {
			if f := p.Weights.Factors(); f != nil {
				own = f
			}
		}
		count := p.N / rows // factors that the part takes
		switch {
		case count == 0 || p.N%rows != 0:
			return nil, fmt.Errorf("tensor %s: a part of %d rows, want whole experts", o.Name, p.N)
		case int64(len(own)) == 1:
			own = slices.Repeat(own, int(count))
		case int64(len(own)) != count:
			return nil, fmt.Errorf("tensor %s: %d scales for %d experts", o.Name, len(own), count)
		}
		factors = append(factors, own...)
	}
	o.factors = factors
	return newTarget(Tensor{
		Name: strings.TrimSuffix(o.Name, ".weight") + ".scale", Dims: []int64{n}, F32: true, Literal: factors,
	}, "", gguf.F32)
}
