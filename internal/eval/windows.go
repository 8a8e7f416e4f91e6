package eval

import (
	"errors"
	"fmt"
)

// Windows cuts a text as llama.cpp's perplexity does: windows of size tokens, one
// after another, of each of which the second half is scored; what is left at the end
// is not used. With a stride above 0 a window begins stride tokens after the one
// before, and its last stride tokens are scored: each prediction then has at least
// size-stride tokens to look back at.
func Windows(ids []int32, size, stride int) ([]Window, error) {
	if size < 2 || stride < 0 || stride >= size {
		return nil, fmt.Errorf("windows of %d tokens, %d apart: want 2 at least, and less apart than long", size, stride)
	}
	if len(ids) < size {
		return nil, fmt.Errorf("the text has %d tokens, a window %d: %w", len(ids), size, ErrTooShort)
	}
	step, first := size, size/2
	if stride > 0 {
		step, first = stride, size-stride
	}
	var list []Window
	for at := 0; at+size <= len(ids); at += step {
		list = append(list, Window{ids[at : at+size], first})
	}
	return list, nil
}

// ErrTooShort reports a text of less than one window.
var ErrTooShort = errors.New("the text is too short")
