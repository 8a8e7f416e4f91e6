package media

import (
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// FormatError reports a file that is damaged, cut short, or not what its first
// bytes promise.
type FormatError struct {
	File   string // name as given by the caller
	Format string // container or codec, "png", or "" if it was not recognised
	Offset int64  // byte offset of the problem, -1 if the decoder does not say
	Err    error  // what is wrong
}

func (e *FormatError) Error() string {
	s := e.File + ": "
	// Some decoders put the format first themselves.
	if e.Format != "" && !strings.HasPrefix(e.Err.Error(), e.Format+": ") {
		s += e.Format + ": "
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf("offset %d: ", e.Offset)
	}
	return s + e.Err.Error()
}

// Unwrap returns the decoder's own error.
func (e *FormatError) Unwrap() error { return e.Err }

// UnsupportedError reports an intact file of a kind that this program does not
// read, or not without a tool that is not installed.
type UnsupportedError struct {
	File   string
	Format string // "heic", "mp3 (MPEG-2.5)", or "" if it was not recognised
	Reason string
}

func (e *UnsupportedError) Error() string {
	if e.Format == "" || strings.HasPrefix(e.Reason, e.Format+": ") {
		return e.File + ": " + e.Reason
	}
	return e.File + ": " + e.Format + ": " + e.Reason
}

// LimitError reports a file that is larger than the caller allows.
type LimitError struct {
	File  string
	What  string // "pixels", "bytes", "seconds"
	Found int64
	Max   int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %d %s, at most %d are allowed", e.File, e.Found, e.What, e.Max)
}

// formatErr wraps a decoder's error. Our own decoders return a FormatError that
// lacks only the names. An end of file inside a file is always an unexpected
// one, whatever the decoder calls it.
func formatErr(file, format string, err error) error {
	if f := (*FormatError)(nil); errors.As(err, &f) {
		return &FormatError{File: file, Format: format, Offset: f.Offset, Err: f.Err}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("file is cut short: %w", io.ErrUnexpectedEOF)
	}
	return &FormatError{File: file, Format: format, Offset: -1, Err: err}
}

// cutShort says that a file ends in the middle of what stands at offset.
func cutShort(offset int) error {
	return &FormatError{Offset: int64(offset), Err: fmt.Errorf("file is cut short: %w", io.ErrUnexpectedEOF)}
}

// guard runs f, which calls a third-party decoder, and turns a panic on damaged
// data into an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoder stopped: %v", r)
		}
	}()
	return f()
}

// unsupportedFeature is what our own decoders return for intact files that they
// do not read.
type unsupportedFeature string

func (e unsupportedFeature) Error() string { return string(e) + " is not supported" }

// isUnsupported reports whether a decoder's error means an intact file that uses
// a feature the decoder lacks.
func isUnsupported(err error) bool {
	var own unsupportedFeature
	var p png.UnsupportedError
	var t tiff.UnsupportedError
	return errors.As(err, &own) || errors.As(err, &p) || errors.As(err, &t) || errors.Is(err, bmp.ErrUnsupported)
}
