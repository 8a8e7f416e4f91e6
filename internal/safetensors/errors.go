package safetensors

import (
	"fmt"
)

// FormatError reports a file that is not valid safetensors, or an index that is
// not valid or does not fit its shards.
type FormatError struct {
	Off int64  // offset in the file of the field that is wrong, 0 if it is the whole
	Msg string // what is wrong, lower case, no full stop
}

// Error returns the message with the offset; the file's name is in the error around it.
func (e *FormatError) Error() string {
	return fmt.Sprintf("safetensors: offset %d: %s", e.Off, e.Msg)
}

// UnsupportedError reports a file that may be in order but uses what this package
// does not read, or a conversion that it does not do.
type UnsupportedError struct {
	Msg string // what is not supported, lower case, no full stop
}

// Error returns the message; the file's name is in the error around it.
func (e *UnsupportedError) Error() string { return "safetensors: unsupported: " + e.Msg }

// MissingShardError reports a shard that the index lists and the directory lacks.
type MissingShardError struct {
	Shard   string   // file name
	Tensors []string // names the index places in it, in the index's order
}

// Error names the shard and one of its tensors.
func (e *MissingShardError) Error() string {
	return fmt.Sprintf("safetensors: shard %s of the index is missing (%d tensors, first %q)",
		e.Shard, len(e.Tensors), e.Tensors[0])
}

func formatErrorf(off int64, format string, args ...any) error {
	return &FormatError{Off: off, Msg: fmt.Sprintf(format, args...)}
}

func unsupportedf(format string, args ...any) error {
	return &UnsupportedError{Msg: fmt.Sprintf(format, args...)}
}
