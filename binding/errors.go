package binding

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// ShapeError reports a graph that was built wrongly: an operation whose
// operands ggml would refuse with abort().
type ShapeError struct {
	Op       string   // ggml's name of the operation
	Reason   string   // what is wrong
	Operands []string // name, type and shape of each
	Stack    []byte   // where
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s(%s): %s", e.Op, strings.Join(e.Operands, ", "), e.Reason)
}

func fail(op, format string, operands []*Tensor, args ...any) {
	e := &ShapeError{Op: op, Reason: fmt.Sprintf(format, args...), Stack: debug.Stack()}
	for _, t := range operands {
		e.Operands = append(e.Operands, strings.TrimSpace(t.String()))
	}
	panic(e)
}

// Guard runs build and returns the ShapeError that it panicked with, if any.
// Other panics pass through.
func Guard(build func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *ShapeError:
			err = p
		default:
			panic(p)
		}
	}()
	build()
	return nil
}
