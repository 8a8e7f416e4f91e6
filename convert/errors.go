package convert

import (
	"fmt"
	"strings"
)

// FormatError reports a file of a checkpoint that is not what its name promises.
type FormatError struct {
	Path string // the file
	Off  int64  // byte offset of the fault, or -1 where Msg names a key instead
	Msg  string // what is wrong, lower case, no full stop
}

// Error returns the file, the place and the message.
func (e *FormatError) Error() string {
	if e.Off < 0 {
		return e.Path + ": " + e.Msg
	}
	return fmt.Sprintf("%s: offset %d: %s", e.Path, e.Off, e.Msg)
}

// UnsupportedError reports a checkpoint that may be in order but is not one that
// the converter reads.
type UnsupportedError struct {
	Path string // the file, or the checkpoint's folder
	Msg  string // what is not supported, lower case, no full stop
}

// Error returns the file and the message.
func (e *UnsupportedError) Error() string { return e.Path + ": unsupported: " + e.Msg }

// TensorsError reports how a checkpoint's tensors differ from what its
// architecture and config.json call for. At least one list is not empty.
type TensorsError struct {
	Dir     string
	Missing []string // wanted and not there
	Unknown []string // there and not wanted
	Shapes  []string // one text per tensor: name, shape found, shape wanted
}

// Error returns everything that is wrong in one line; long lists are cut.
func (e *TensorsError) Error() string {
	var parts []string
	for _, l := range []struct {
		one, many string
		items     []string
	}{
		{"wrong shape", "wrong shapes", e.Shapes},
		{"missing tensor", "missing tensors", e.Missing},
		{"unknown tensor", "unknown tensors", e.Unknown},
	} {
		switch n := len(l.items); n {
		case 0:
		case 1:
			parts = append(parts, l.one+" "+l.items[0])
		default:
			parts = append(parts, fmt.Sprintf("%d %s: %s", n, l.many, listed(l.items)))
		}
	}
	return e.Dir + ": " + strings.Join(parts, "; ")
}

// maxListed is how many names of a list an error message shows.
const maxListed = 16

// listed joins names, cutting a long list.
func listed(names []string) string {
	if extra := len(names) - maxListed; extra > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), extra)
	}
	return strings.Join(names, ", ")
}

// NonFiniteError reports weights that are NaN or infinite.
type NonFiniteError struct {
	Dir     string
	Count   int64  // values
	Tensors int    // tensors of the outputs with such values
	First   string // name of the first such tensor in the checkpoint
}

// Error returns the count and the first tensor's name.
func (e *NonFiniteError) Error() string {
	return e.Dir + ": " + e.text()
}

// text is the message without the checkpoint.
func (e *NonFiniteError) text() string {
	return fmt.Sprintf("%s in %s, first in %s",
		plural(e.Count, "NaN or infinite weight"), plural(int64(e.Tensors), "tensor"), e.First)
}

// plural writes a count of things.
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// RangeError reports finite weights that the output type cannot hold.
type RangeError struct {
	Dir    string
	Tensor string // name in the checkpoint
	Count  int64  // values
	Type   string // the output type
}

// Error returns the tensor, the count and the type.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: tensor %s: %s beyond the range of %s", e.Dir, e.Tensor, plural(e.Count, "weight"), e.Type)
}
