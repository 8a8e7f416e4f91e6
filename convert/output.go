package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/inkling-go/inkling/internal/gguf"
)

// output is one output file, ready to be written.
type output struct {
	file  File
	path  string
	kv    []KV        // all keys
	types []gguf.Type // of file.Tensors
	sizes []int64     // in bytes, of file.Tensors
}

// newOutput settles the types of a file's tensors, its keys and its name.
func newOutput(src *Source, f File, o OutType, n names) (output, error) {
	if o == "" {
		o = OutAuto
	}
	out := output{file: f}
	share := make(map[gguf.Type]int64) // elements that follow the output type, by type
	for _, t := range f.Tensors {
		to := o.tensorType(t)
		row, err := to.RowBytes(t.Dims[0])
		if err != nil {
			return output{}, fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		out.types = append(out.types, to)
		out.sizes = append(out.sizes, row*product(t.Dims[1:]))
		if !t.keepsF32() {
			share[to] += t.Elems()
		}
	}
	fileType := o.fileType(share)
	var err error
	if out.kv, err = general(src, f, n.title, fileType); err != nil {
		return output{}, err
	}
	out.kv = append(out.kv, f.KV...)
	out.path = filepath.Join(n.outDir, f.Kind.fileName(n.model, strings.ToUpper(fileType.String())))
	return out, nil
}

// report describes the file.
func (o output) report() FileReport {
	r := FileReport{Kind: o.file.Kind, Path: o.path, Tensors: len(o.types)}
	for i, t := range o.types {
		r.Bytes += o.sizes[i]
		at, found := slices.BinarySearchFunc(r.Types, t, func(c TypeCount, t gguf.Type) int { return int(c.Type) - int(t) })
		if !found {
			r.Types = slices.Insert(r.Types, at, TypeCount{Type: t})
		}
		r.Types[at].Tensors++
		r.Types[at].Bytes += o.sizes[i]
	}
	return r
}

// notes says where the types are not those asked for.
func (o output) notes(want OutType) []string {
	n := 0
	for i, t := range o.types {
		if want == OutQ8_0 && t == gguf.F16 && !o.file.Tensors[i].keepsF32() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: tensors kept in f16 since their rows are no multiple of 32: %d", o.path, n)}
}

// checkPaths refuses to replace files that are there.
func checkPaths(outs []output, force bool) error {
	for _, out := range outs {
		st, err := os.Lstat(out.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !force || !st.Mode().IsRegular():
			return &fs.PathError{Op: "write", Path: out.path, Err: fs.ErrExist}
		}
	}
	return nil
}

// inFolder runs do with a folder that exists. What it had to create for that is
// removed again if do fails.
func inFolder(dir string, do func() error) error {
	var created []string // outermost last
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		created = append(created, d)
	}
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = do()
	}
	if err != nil {
		for _, d := range created {
			_ = os.Remove(d) // one with somebody else's files in it stays
		}
	}
	return err
}

// commitAll gives the outputs their names. If one cannot be had, those before it
// are removed again: half a model is none.
func commitAll(ctx context.Context, writers []*gguf.Writer, outs []output) error {
	for i, gw := range writers {
		err := context.Cause(ctx)
		if err == nil {
			err = gw.Commit()
		}
		if err != nil {
			for _, out := range outs[:i] {
				err = errors.Join(err, os.Remove(out.path))
			}
			return err
		}
	}
	return nil
}

// CheckName returns what is wrong with the name of a model as part of file names.
func CheckName(name string) error {
	bad := func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) }
	if name == "" || name == "." || name == ".." || strings.IndexFunc(name, bad) >= 0 || len(name) > 200 {
		return fmt.Errorf("model name %q cannot be part of a file name", name)
	}
	return nil
}
