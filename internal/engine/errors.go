package engine

import (
	"errors"
	"fmt"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// Errors that callers tell apart.
var (
	ErrClosed      = errors.New("the model is closed")
	ErrBusy        = errors.New("too many requests are waiting")
	ErrContextFull = models.ErrContextFull  // a prompt that does not fit
	ErrOutOfMemory = binding.ErrOutOfMemory // the device has no room for a model, its cache or a step
	ErrNotFinite   = errors.New("the model computed values that are not finite")
	ErrNoProjector = errors.New("no projector (mmproj file) is loaded")
)

// RequestError reports a request that can not be answered as it is: the fault is
// the caller's, and the same request will fail again.
type RequestError struct {
	Param string // the setting that is wrong, in the words of OpenAI's API; empty if it is none in particular
	Err   error
}

func (e *RequestError) Error() string {
	if e.Param == "" {
		return e.Err.Error()
	}
	return e.Param + ": " + e.Err.Error()
}

// Unwrap returns what is wrong.
func (e *RequestError) Unwrap() error { return e.Err }

// PanicError reports a fault of this program in what it made of one answer. The
// answers of others go on.
type PanicError struct {
	Value any // of the panic
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

// MediumError reports a medium that can not be read or shown to the model.
type MediumError struct {
	Field string // where the request has it
	Err   error
}

func (e *MediumError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *MediumError) Unwrap() error { return e.Err }
