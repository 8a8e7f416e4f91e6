// Package describe says what is in a GGUF file, and what the store has about a model.
package describe

import (
	"fmt"
	"math"
	"reflect"

	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/gguf"
)

// Model is what show tells about a file, in the form of --json.
type Model struct {
	File         string         `json:"file"`
	Parts        int            `json:"parts"`
	Bytes        int64          `json:"bytes"`
	Architecture string         `json:"architecture"`
	Name         string         `json:"name,omitempty"`
	Parameters   int64          `json:"parameters"`
	Context      uint64         `json:"context_length,omitempty"`
	Quantisation string         `json:"quantisation"`        // the type that most weights have
	Projector    string         `json:"projector,omitempty"` // file beside a text model
	Stored       *StoredInfo    `json:"stored,omitempty"`
	Types        []typeTotal    `json:"types"`
	Keys         map[string]any `json:"keys"`
	Tensors      []tensor       `json:"tensors"`
}

// typeTotal is what the tensors of one type amount to.
type typeTotal struct {
	Type       string `json:"type"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}

type tensor struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"` // ggml order
	Bytes int64   `json:"bytes"`
}

// File describes a file; the projector beside it is looked for, not read.
func File(f *gguf.File) (*Model, error) {
	d := &Model{File: f.Path(), Parts: len(f.Parts()), Keys: map[string]any{}}
	for _, p := range f.Parts() {
		d.Bytes += int64(len(p))
	}
	var err error
	if d.Architecture, err = f.Str("general.architecture"); err != nil {
		return nil, err
	}
	if d.Name, err = f.StrOr("general.name", ""); err != nil {
		return nil, err
	}
	if d.Context, err = f.UintOr(d.Architecture+".context_length", 0); err != nil {
		return nil, err
	}
	if d.Architecture != "clip" {
		if d.Projector, err = engine.FindProjector(f.Path()); err != nil {
			d.Projector = err.Error() // several: which one is for run to be told
		}
	}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		d.Keys[key] = JSONValue(v)
	}
	d.addTensors(f.Tensors())
	return d, nil
}

// addTensors lists the tensors and adds up their types, in order of appearance.
func (d *Model) addTensors(tensors []gguf.TensorInfo) {
	index := map[gguf.Type]int{}
	most := -1
	for _, t := range tensors {
		d.Tensors = append(d.Tensors, tensor{t.Name, t.Type.String(), t.Dims, t.Size})
		d.Parameters += t.Elems()
		i, ok := index[t.Type]
		if !ok {
			i = len(d.Types)
			index[t.Type] = i
			d.Types = append(d.Types, typeTotal{Type: t.Type.String()})
		}
		total := &d.Types[i]
		total.Tensors++
		total.Parameters += t.Elems()
		total.Bytes += t.Size
		if most < 0 || total.Parameters > d.Types[most].Parameters {
			most = i
		}
	}
	if most >= 0 {
		d.Quantisation = d.Types[most].Type
	}
}

// JSONValue replaces the floats that JSON has no numbers for by their names.
func JSONValue(v any) any {
	r := reflect.ValueOf(v)
	switch {
	case r.CanFloat():
		if f := r.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Sprint(v)
		}
	case r.Kind() == reflect.Slice:
		out := make([]any, r.Len())
		for i := range out {
			out[i] = JSONValue(r.Index(i).Interface())
		}
		return out
	}
	return v
}
