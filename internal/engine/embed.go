package engine

import (
	"context"
	"errors"
)

// Embed returns a vector for each text, and the number of tokens of all: the
// mean over the rows of the hidden state after the final norm, of length 1.
func (e *Engine) Embed(_ context.Context, _ []string) (vectors [][]float32, tokens int, err error) {
	return nil, 0, errors.ErrUnsupported
}
