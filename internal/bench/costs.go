package bench

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
)

// Costs is what the steps of a model read from memory, in bytes.
type Costs struct {
	Dense   int64 // weights that every token uses
	Expert  int64 // weights of one expert of each layer, added up
	Experts int   // of a layer that a token chooses from
	Used    int   // of them that it uses

	fixed, perRow float64 // of keys and values: fixed + perRow * rows
}

// ReadCosts adds up the tensors of a file by their use. Of the embedding table a
// token reads one row, which is not counted, unless the table is the output too;
// layers for multi-token prediction are not the model's.
func ReadCosts(f *models.File, m models.Model, kv binding.DType) (c Costs, err error) {
	arch, err := f.Str("general.architecture")
	if err != nil {
		return c, err
	}
	experts, err := f.UintOr(arch+".expert_count", 0)
	if err != nil {
		return c, err
	}
	used, err := f.UintOr(arch+".expert_used_count", 0)
	if err != nil {
		return c, err
	}
	if used > experts || experts > math.MaxInt32 {
		return c, fmt.Errorf("%s: %d of %d experts used", f.Path(), used, experts)
	}
	c.Experts, c.Used = int(experts), int(used)
	_, hasOutput := f.Tensor("output.weight")
	for _, t := range f.Tensors() {
		switch {
		case t.Name == "token_embd.weight" && hasOutput, isAhead(t, m.Config().Layers):
		case isExpert(t) && experts > 0:
			c.Expert += t.Size / int64(experts)
		default:
			c.Dense += t.Size
		}
	}
	return c, c.measureKV(m, kv)
}

// isExpert reports whether a tensor is a bank of experts that tokens choose from;
// shared ones (shexp) are used by all.
func isExpert(t gguf.TensorInfo) bool { return strings.Contains(t.Name, "_exps.") }

// isAhead reports whether a tensor is in a block behind a model's layers.
func isAhead(t gguf.TensorInfo, layers int) bool {
	var i int
	_, err := fmt.Sscanf(t.Name, "blk.%d.", &i)
	return err == nil && i >= layers
}

// measureKV finds the size of keys and values at two lengths. Layers with a window
// have the same at both.
func (c *Costs) measureKV(m models.Model, kv binding.DType) error {
	most := m.Config().Context
	lengths := [2]int{max(most/4, 1), max(most/2, 1)}
	if most > 1<<16 { // so as not to take more than is needed for the slope
		lengths = [2]int{8192, 16384}
	}
	var sizes [2]float64
	for i, n := range lengths {
		cache, err := m.NewCache(1, n, kv)
		if err != nil {
			return err
		}
		sizes[i] = float64(cache.Bytes() - cache.StateBytes())
		cache.Close()
	}
	if lengths[0] == lengths[1] {
		return errors.New("the model's context is too short to be measured")
	}
	c.perRow = (sizes[1] - sizes[0]) / float64(lengths[1]-lengths[0])
	c.fixed = max(sizes[0]-c.perRow*float64(lengths[0]), 0)
	return nil
}

// perToken is what one token of a step of seqs sequences reads, each with rows rows
// behind it. Weights are read once for all of them; of the experts those that any of
// them chooses, by chance: (1 - (1-used/experts)^seqs) of all.
func (c Costs) perToken(rows, seqs int) int64 {
	weights := float64(c.Dense)
	if c.Experts > 0 {
		share := 1 - math.Pow(1-float64(c.Used)/float64(c.Experts), float64(seqs))
		weights += share * float64(c.Experts) * float64(c.Expert)
	}
	return int64(weights/float64(seqs) + c.fixed + c.perRow*float64(rows))
}

// Active is the bytes of weights that one token uses.
func (c Costs) Active() int64 { return c.Dense + int64(c.Used)*c.Expert }
