package quantin

import (
	"hash/fnv"
	"math"

	"github.com/inkling-go/inkling/internal/safetensors"
)

// drawnRows is how many different rows drawn weights have; they repeat after that, so
// that a large tensor is encoded once and then copied.
const drawnRows = 64

// Draw returns weights that are not stored but drawn: about normal with mean 0 and
// the given deviation, or where that is 0 all of them value. The same seed, name and
// shape give the same weights.
func Draw(name string, shape []int64, seed uint64, deviation, value float32) *Weights {
	h := fnv.New64a()
	h.Write([]byte(name))
	w := &Weights{
		Name: name, Shape: shape, Format: Drawn, Bits: 32,
		Parts: []safetensors.Tensor{{Name: name, DType: safetensors.F32, Shape: shape}},
	}
	w.codec = drawn{h.Sum64() ^ seed, deviation, value}
	return w
}

// Period returns after how many rows the weights repeat; 0 if they do not.
func (w *Weights) Period() int64 {
	if w == nil {
		return 0
	}
	if w.Format == Drawn {
		return drawnRows
	}
	return 0
}

// drawn makes weights up.
type drawn struct {
	seed             uint64
	deviation, value float32
}

// decode adds up four bytes of a random word for each weight, whose sum is close
// enough to normal: mean 510, variance 4·(256²-1)/12.
func (d drawn) decode(dst []float32, row int64) {
	if d.deviation == 0 {
		for i := range dst {
			dst[i] = d.value
		}
		return
	}
	scale := d.deviation / float32(math.Sqrt(65535.0/3))
	state := d.seed + uint64(row%drawnRows)*0x9e3779b97f4a7c15
	for i := 0; i < len(dst); i += 2 {
		x := splitMix(&state)
		dst[i] = d.value + scale*(sum4(uint32(x))-510)
		if i+1 < len(dst) {
			dst[i+1] = d.value + scale*(sum4(uint32(x>>32))-510)
		}
	}
}

func sum4(x uint32) float32 {
	pairs := x&0x00ff00ff + x>>8&0x00ff00ff
	return float32(pairs&0xffff + pairs>>16)
}

// splitMix is the next number of a SplitMix64 generator.
//
// Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators.
func splitMix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	x := *state
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Rowed returns drawn weights as rows of another length.
func (w *Weights) Rowed(cols int64) *Weights {
	y := *w
	y.Shape = []int64{elems(w.Shape) / max(1, cols), cols}
	return &y
}
