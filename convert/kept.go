package convert

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"slices"

	"github.com/inkling-go/inkling/internal/gguf"
)

// keepTowers finds the mmproj file that an earlier conversion of the same checkpoint
// has left: the towers of a model are the same for most types of its text. Such a file
// is not written again if every byte of it is what this run would write. It returns
// the outputs that are to be written and marks the others in files, which is parallel.
//
// Outputs that are all there are none of its business: they are verified or refused.
func keepTowers(ctx context.Context, src *Source, outs []output, files []FileReport, o Options) ([]output, error) {
	if o.Force || src.Drawn() || allExist(outs) {
		return outs, nil
	}
	var rest []output
	for i, out := range outs {
		if out.file.Kind == MMProj && len(out.parts) == 1 && out.exists() {
			same, err := out.isWritten(ctx, src, o)
			if err != nil {
				return nil, err
			}
			if files[i].Kept = same; same {
				continue
			}
		}
		rest = append(rest, out)
	}
	return rest, nil
}

// allExist reports whether all outputs are there.
func allExist(outs []output) bool {
	return !slices.ContainsFunc(outs, func(out output) bool { return !out.exists() })
}

// exists reports whether all parts of an output are there.
func (out *output) exists() bool {
	return !slices.ContainsFunc(out.parts, func(p outPart) bool {
		_, err := os.Stat(p.path)
		return err != nil
	})
}

// errDiffers ends the comparison of a file with what would be written.
var errDiffers = errors.New("differs")

// isWritten reports whether the file of an output is what this run would write. A file
// that is none of ours is not.
func (out *output) isWritten(ctx context.Context, src *Source, o Options) (bool, error) {
	f, err := gguf.Open(out.parts[0].path)
	if err != nil {
		return false, nil
	}
	defer f.Close()
	if !out.hasHeaderOf(f) {
		return false, nil
	}
	w, err := newWriting(src, []output{*out}, o)
	if err != nil {
		return false, err
	}
	there := make(map[*target][]byte)
	for i, info := range f.Tensors() {
		there[out.targets[i]] = f.Bytes(info)
	}
	err = w.each(ctx, w.units, func(c *chunk, u *unit, a, b int64) error {
		defer w.release(u, a, b)
		if err := c.set(u, a, b); err != nil {
			return err
		}
		for _, x := range u.uses {
			first, end := x.span(a, b)
			if first == end {
				continue
			}
			want, err := c.encoded(x, first, end)
			if err != nil {
				return err
			}
			n := x.target.rowBytes
			if !bytes.Equal(want, there[x.target][(x.row+first)*n:(x.row+end)*n]) {
				return errDiffers
			}
		}
		return nil
	})
	if errors.Is(err, errDiffers) {
		return false, nil
	}
	return err == nil, err
}

// hasHeaderOf reports whether a file has the keys and tensors of the output, in order.
func (out *output) hasHeaderOf(f *gguf.File) bool {
	tensors := f.Tensors()
	if len(f.Keys()) != len(out.kv) || len(tensors) != len(out.targets) {
		return false
	}
	for _, kv := range out.kv {
		if v, ok := f.Value(kv.Key); !ok || !reflect.DeepEqual(v, kv.Value) {
			return false
		}
	}
	for i, t := range out.targets {
		if x := tensors[i]; x.Name != t.Name || x.Type != t.to || !slices.Equal(x.Dims, t.Dims) || t.Literal != nil {
			return false
		}
	}
	return true
}
