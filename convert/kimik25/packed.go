package kimik25

import (
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/convert"
)

// packedSuffixes end the names of what stands for a quantised weight: the codes of
// compressed-tensors, and the block scales of FP8 checkpoints.
var packedSuffixes = []string{".weight_packed", ".weight_scale_inv"}

// refusePacked refuses checkpoints whose weights are codes and scales.
func refusePacked(src *convert.Source) error {
	for _, name := range src.Tensors.Names() {
		for _, suffix := range packedSuffixes {
			if strings.HasSuffix(name, suffix) {
				return &convert.UnsupportedError{Path: src.Dir, Msg: fmt.Sprintf(
					"tensor %s belongs to a quantised weight; convert from BF16, F16 or F32 weights", name)}
			}
		}
	}
	return nil
}
