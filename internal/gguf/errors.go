package gguf

import (
	"errors"
	"fmt"
)

// ErrMissing reports a key that the caller requires and the file lacks.
var ErrMissing = errors.New("missing from file")

// FormatError reports bytes that are not valid GGUF, or a value of a type other
// than the one its key calls for.
type FormatError struct {
	Off int64  // offset in the file of the field that is wrong
	Msg string // what is wrong, lower case, no full stop
}

// Error returns the message with the offset; the file's name is in the error around it.
func (e *FormatError) Error() string { return fmt.Sprintf("gguf: offset %d: %s", e.Off, e.Msg) }

// UnsupportedError reports a file that may be in order but uses what this
// package does not read: an old version, the other byte order, an unknown type.
type UnsupportedError struct {
	Msg string // what is not supported, lower case, no full stop
}

// Error returns the message; the file's name is in the error around it.
func (e *UnsupportedError) Error() string { return "gguf: unsupported: " + e.Msg }

func formatErrorf(off int64, format string, args ...any) error {
	return &FormatError{Off: off, Msg: fmt.Sprintf(format, args...)}
}

func unsupportedf(format string, args ...any) error {
	return &UnsupportedError{Msg: fmt.Sprintf(format, args...)}
}
