package convert

import (
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

// output is one output file, or model in several files, ready to be written.
type output struct {
	file    File
	kv      []KV // all keys, those about the parts aside
	targets []*target
	parts   []outPart
	fell    int // tensors whose type did not fit their rows
}

// outPart is one file: targets [first, end).
type outPart struct {
	path       string
	first, end int
}

// newOutput settles the types of a file's tensors, its keys and its names.
func newOutput(src *Source, f File, o Options, n names) (output, error) {
	out := output{file: f}
	share := make(map[gguf.Type]int64) // elements that follow the output type, by type
	types := typesFor(f, o)
	for _, t := range f.Tensors {
		to, err := types.of(t)
		if err != nil {
			return output{}, err
		}
		if to.fell {
			out.fell++
		}
		x, err := newTarget(t, "", to.t)
		if err != nil {
			return output{}, err
		}
		if !t.keepsF32() {
			share[to.t] += t.Elems()
		}
		if x.importance, err = o.Imatrix.of(t, to.t); err != nil {
			return output{}, err
		}
		out.targets = append(out.targets, x)
		if to.t == gguf.NVFP4 {
			scale, err := x.factored()
			if err != nil {
				return output{}, err
			}
			out.targets = append(out.targets, scale)
		}
		if o.OutType == OutAuto && lossy(t, to.t) {
			x.loss = new(loss)
		}
	}
	label, fileType := types.label(share)
	var err error
	if out.kv, err = general(src, f, n.title, fileType); err != nil {
		return output{}, err
	}
	out.kv = append(out.kv, f.KV...)
	if o.Imatrix != nil && f.Kind != MMProj {
		out.kv = append(out.kv, o.Imatrix.keys()...)
	}
	out.split(filepath.Join(n.outDir, f.Kind.stem(n.model, label)), o.SplitMax)
	return out, nil
}

// lossy reports whether weights that came quantised are rounded again.
func lossy(t Tensor, to gguf.Type) bool {
	for _, p := range t.Parts {
		if p.Weights != nil {
			packs, ok := p.Weights.Packs()
			return !ok || packs != to
		}
	}
	return false
}

// split distributes the tensors over files of at most a number of bytes of data, 0
// for one file. A tensor that is larger has a file of its own.
func (out *output) split(stem string, most int64) {
	var size int64
	from := 0
	for i, t := range out.targets {
		n := t.rows * t.rowBytes
		if most > 0 && i > from && size+n > most {
			out.parts = append(out.parts, outPart{"", from, i})
			from, size = i, 0
		}
		size += n
	}
	out.parts = append(out.parts, outPart{"", from, len(out.targets)})
	for i := range out.parts {
		p := &out.parts[i]
		p.path = stem + ".gguf"
		if len(out.parts) > 1 {
			p.path = fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, i+1, len(out.parts))
		}
		for _, t := range out.targets[p.first:p.end] {
			t.path = p.path
		}
	}
}

// open begins the files and gives the targets their places in them. again: they are
// there from an interrupted run. The writers are returned even with an error.
func (out *output) open(again bool) ([]*gguf.Writer, error) {
	var writers []*gguf.Writer
	for no, p := range out.parts {
		gw, err := gguf.Create, error(nil)
		if again {
			gw = gguf.Reopen
		}
		w, err := gw(p.path)
		if again && errors.Is(err, fs.ErrNotExist) {
			w, err = gguf.Create(p.path)
		}
		if err != nil {
			return writers, err
		}
		writers = append(writers, w)
		for _, kv := range out.keys(no) {
			if err := w.Set(kv.Key, kv.Value); err != nil {
				return writers, err
			}
		}
		for i, t := range out.targets[p.first:p.end] {
			if err := w.AddTensor(t.Name, t.to, t.Dims); err != nil {
				return writers, err
			}
			t.write = func(p []byte, off int64) error { return w.WriteAt(i, p, off) }
			t.read = func(p []byte, off int64) error { return w.ReadAt(i, p, off) }
			t.keep = func(n int64) { w.Kept(i, n) }
		}
		if err := w.Begin(); err != nil {
			return writers, err
		}
	}
	return writers, nil
}

// keys returns the keys of a part. As llama.cpp's gguf-split has it, the first one
// has all of the model's.
func (out *output) keys(no int) []KV {
	if len(out.parts) == 1 {
		return out.kv
	}
	kv := []KV{
		{"split.no", uint16(no)},
		{"split.count", uint16(len(out.parts))},
		{"split.tensors.count", int32(len(out.targets))},
	}
	if no == 0 {
		kv = append(slices.Clone(out.kv), kv...)
	}
	return kv
}

// report describes the file.
func (out *output) report() FileReport {
	r := FileReport{Kind: out.file.Kind, Path: out.parts[0].path, Tensors: len(out.targets)}
	for _, p := range out.parts[1:] {
		r.More = append(r.More, p.path)
	}
	for _, t := range out.targets {
		n := t.rows * t.rowBytes
		r.Bytes += n
		at, found := slices.BinarySearchFunc(r.Types, t.to, func(c TypeCount, t gguf.Type) int { return int(c.Type) - int(t) })
		if !found {
			r.Types = slices.Insert(r.Types, at, TypeCount{Type: t.to})
		}
		r.Types[at].Tensors++
		r.Types[at].Bytes += n
	}
	return r
}

// notes says where the types are not those asked for.
func (out *output) notes() []string {
	if out.fell == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: tensors of another type since their rows are no multiple of the block: %d",
		out.parts[0].path, out.fell)}
}

// journalPath returns where the run with this output keeps its journal.
func (out *output) journalPath() string {
	return strings.TrimSuffix(out.parts[0].path, ".gguf") + ".journal.partial"
}

// checkPaths refuses to replace files that are there.
func checkPaths(outs []output, force bool) error {
	for _, out := range outs {
		for _, p := range out.parts {
			st, err := os.Lstat(p.path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case !force || !st.Mode().IsRegular():
				return &fs.PathError{Op: "write", Path: p.path, Err: fs.ErrExist}
			}
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

// CheckName returns what is wrong with the name of a model as part of file names.
func CheckName(name string) error {
	bad := func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) }
	if name == "" || name == "." || name == ".." || strings.IndexFunc(name, bad) >= 0 || len(name) > 200 {
		return fmt.Errorf("model name %q cannot be part of a file name", name)
	}
	return nil
}
