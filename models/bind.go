package models

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
)

// Dims gives the dimension names of shape tags their values.
type Dims map[string]int64

// dimser is implemented by structs whose fields have dimensions of their own,
// as a layer has; they are laid over those of the struct around it.
type dimser interface{ Dims() Dims }

// wanted is one tagged field.
type wanted struct {
	field    *(*binding.Tensor)
	name     string
	ne       []int64
	optional bool
	f32      bool
}

// Weights owns the tensors of a model.
type Weights struct {
	mems []*binding.Memory
	size int64
}

// Size is the number of bytes of all tensors.
func (w *Weights) Size() int64 { return w.size }

// Close frees the tensors.
func (w *Weights) Close() {
	for _, m := range w.mems {
		m.Close()
	}
}

// Bind fills the *binding.Tensor fields of the struct that model points to.
//
// A field's tag gguf:"attn_q.weight" names its tensor; the tags of the structs
// around it are put in front with dots, and a slice adds the index; nil elements
// are passed over. The tag ne:"n_embd,n_head*head_dim" is the shape in ggml's order,
// in names that Dims gives values to; a sum or product of names and numbers is
// allowed. The options ",optional" and ",f32" after the name say that the tensor may
// be missing, and that no other type will do.
//
// A tensor that is missing or has another shape is an error; so is a tensor in
// the file that no field names, unless extra allows it.
func Bind(model any, f *gguf.File, p Params, dims Dims, extra func(name string) bool) (*Weights, error) {
	var ws []wanted
	if err := collect(reflect.ValueOf(model).Elem(), "", dims, &ws); err != nil {
		return nil, err
	}
	var infos []gguf.TensorInfo
	var errs []error
	bound := map[string]bool{}
	ws = slices.DeleteFunc(ws, func(w wanted) bool {
		info, ok := f.Tensor(w.name)
		if !ok {
			if !w.optional {
				errs = append(errs, fmt.Errorf("%s: tensor %q: %w", f.Path(), w.name, gguf.ErrMissing))
			}
			return true
		}
		bound[w.name] = true
		if err := w.check(info); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Path(), err))
		}
		infos = append(infos, info)
		return false
	})
	for _, t := range f.Tensors() {
		if !bound[t.Name] && (extra == nil || !extra(t.Name)) {
			errs = append(errs, fmt.Errorf("%s: tensor %q is not part of this architecture", f.Path(), t.Name))
		}
	}
	if len(errs) > 0 {
		return nil, firstErrors(errs)
	}
	return place(ws, infos, f, p)
}

// firstErrors keeps a message readable when everything is wrong at once.
func firstErrors(errs []error) error {
	const most = 3
	if n := len(errs); n > most {
		return fmt.Errorf("%w (and %d more)", errs[0], n-1)
	}
	return errors.Join(errs...)
}

func (w *wanted) check(info gguf.TensorInfo) error {
	dims := slices.Clone(info.Dims)
	for len(dims) > len(w.ne) && dims[len(dims)-1] == 1 {
		dims = dims[:len(dims)-1]
	}
	ne := w.ne
	for len(ne) > len(dims) && ne[len(ne)-1] == 1 {
		ne = ne[:len(ne)-1]
	}
	if !slices.Equal(dims, ne) {
		return fmt.Errorf("tensor %q: shape %v, want %v", w.name, info.Dims, w.ne)
	}
	t := binding.DType(info.Type)
	if !t.Known() {
		return fmt.Errorf("tensor %q: type %s is not one of this build's ggml (build with GGML_DIR= and a newer tree)", w.name, info.Type)
	}
	if t != binding.F32 && t != binding.F16 && t != binding.BF16 && !t.Quantized() || !t.Multiplied() {
		return fmt.Errorf("tensor %q: type %s, want one of weights", w.name, info.Type)
	}
	if w.f32 && t != binding.F32 {
		return fmt.Errorf("tensor %q: type %s, want f32", w.name, info.Type)
	}
	return nil
}

// collect walks v, a struct, and lists its tagged fields.
func collect(v reflect.Value, prefix string, dims Dims, ws *[]wanted) error {
	if d, ok := v.Addr().Interface().(dimser); ok {
		merged := Dims{}
		for _, m := range []Dims{dims, d.Dims()} {
			for k, n := range m {
				merged[k] = n
			}
		}
		dims = merged
	}
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		tag, ok := field.Tag.Lookup("gguf")
		if !ok {
			continue
		}
		parts := strings.Split(tag, ",")
		name := join(prefix, parts[0])
		switch {
		case value.Type() == reflect.TypeFor[*binding.Tensor]():
			ne, err := parseShape(field.Tag.Get("ne"), dims)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", v.Type(), field.Name, err)
			}
			*ws = append(*ws, wanted{
				field: value.Addr().Interface().(**binding.Tensor), name: name, ne: ne,
				optional: slices.Contains(parts[1:], "optional"), f32: slices.Contains(parts[1:], "f32"),
			})
		case value.Kind() == reflect.Slice:
			for j := range value.Len() {
				if e := value.Index(j); e.Kind() == reflect.Pointer && e.IsNil() {
					continue // not wanted of this file
				}
				if err := collect(reflect.Indirect(value.Index(j)), join(name, strconv.Itoa(j)), dims, ws); err != nil {
					return err
				}
			}
		case value.Kind() == reflect.Pointer:
			if !value.IsNil() {
				if err := collect(value.Elem(), name, dims, ws); err != nil {
					return err
				}
			}
		case value.Kind() == reflect.Struct:
			if err := collect(value, name, dims, ws); err != nil {
				return err
			}
		}
	}
	return nil
}

func join(prefix, name string) string {
	if prefix == "" || name == "" {
		return prefix + name
	}
	return prefix + "." + name
}

// parseShape evaluates "n_embd,n_expert+n_shared": sums of products per dimension.
func parseShape(tag string, dims Dims) ([]int64, error) {
	if tag == "" {
		return nil, errors.New("no ne tag")
	}
	var ne []int64
	for dim := range strings.SplitSeq(tag, ",") {
		sum := int64(0)
		for term := range strings.SplitSeq(dim, "+") {
			product := int64(1)
			for factor := range strings.SplitSeq(term, "*") {
				n, ok := dims[factor]
				if !ok {
					var err error
					if n, err = strconv.ParseInt(factor, 10, 64); err != nil {
						return nil, fmt.Errorf("shape %q: no dimension %q", tag, factor)
					}
				}
				product *= n
			}
			sum += product
		}
		ne = append(ne, sum)
	}
	return ne, nil
}

// place gives each tensor its data: where it lies in the mapped file if the
// device reads host memory, else in a copy.
func place(ws []wanted, infos []gguf.TensorInfo, f *gguf.File, p Params) (_ *Weights, err error) {
	w := &Weights{}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	mapped, copied := p.Backend.NewWeights(len(ws)), p.Backend.NewWeights(len(ws))
	w.mems = []*binding.Memory{mapped, copied}
	parts, err := mapFile(mapped, f, p)
	if err != nil {
		return nil, err
	}
	var copies []int
	for i, info := range infos {
		mem, on := copied, p.tensorDevice(info.Name)
		if parts != nil && on.Device().IsCPU() && info.Offset%binding.MapAlign == 0 {
			mem = mapped
		}
		t, err := mem.NewOn(on, info.Name, binding.DType(info.Type), info.Dims...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path(), err)
		}
		if mem == mapped {
			if err := parts[info.Part].Place(t, info.Offset); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Path(), err)
			}
		} else {
			copies = append(copies, i)
		}
		*ws[i].field = t
		w.size += info.Size
	}
	if err := copied.Alloc(); err != nil {
		return nil, fmt.Errorf("%s: weights: %w", f.Path(), err)
	}
	p.readAhead(mapped.HostBytes())
	for _, i := range copies {
		t := *ws[i].field
		if p.Fill == nil {
			upload(t, f.Bytes(infos[i]), p.Backend)
			if !p.Backend.HasPinned() { // of what is pinned no page may go
				f.Release(infos[i])
			}
		} else if err := p.Fill(infos[i], t.SetBytes); err != nil {
			return nil, fmt.Errorf("%s: tensor %q: %w", f.Path(), infos[i].Name, err)
		}
	}
	if w.pin(p.Backend) { // not before: see upload
		err = w.measureStreaming(ws, f, p)
	}
	return w, err
}

// upload copies a tensor's data from the file. CUDA refuses to copy from a range of
// which some pages are pinned and others are not: behind weights that are pinned, of
// the same file it may be, the data goes through memory that is not.
func upload(t *binding.Tensor, data []byte, be *binding.Backend) {
	if !be.HasPinned() {
		t.SetBytes(data, 0)
		return
	}
	buf := make([]byte, min(len(data), 16<<20))
	for at := 0; at < len(data); at += len(buf) {
		t.SetBytes(buf[:copy(buf, data[at:])], int64(at))
	}
}

// mapFile makes the file's parts places for tensors, if a device reads host memory. Of
// the layers behind those whose weights are pinned, which may lie in the same file, none are
// mapped: their first page may be pinned already, and the others could not be.
func mapFile(m *binding.Memory, f *gguf.File, p Params) ([]*binding.Mapping, error) {
	devices := p.Backend.Parts()
	if p.NoMmap || p.Fill != nil || p.Backend.HasPinned() || !devices[len(devices)-1].Device().IsCPU() {
		return nil, nil
	}
	var parts []*binding.Mapping
	for _, data := range f.Parts() {
		part, err := m.Map(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path(), err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}
