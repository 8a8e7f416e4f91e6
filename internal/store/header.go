package store

import "github.com/inkling-go/inkling/internal/gguf"

// Header is what the header of a GGUF file says.
type Header struct {
	Keys    map[string]any // numbers, bools and strings as they are stored, or slices of them
	Tensors []HeaderTensor
}

// HeaderTensor is a tensor in a header.
type HeaderTensor struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"` // ggml order
}

// ReadHeader reads the header of a GGUF file, whether it is in the store or not.
func ReadHeader(path string) (*Header, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := &Header{Keys: map[string]any{}}
	for _, key := range f.Keys() {
		h.Keys[key], _ = f.Value(key)
	}
	for _, t := range f.Tensors() {
		h.Tensors = append(h.Tensors, HeaderTensor{t.Name, t.Type.String(), t.Dims})
	}
	return h, nil
}

// FileDetails reads the details of a model that is not in the store, and of its
// projector, unless mmproj is empty.
func FileDetails(model, mmproj string) (Details, error) {
	f, err := gguf.Open(model)
	if err != nil {
		return Details{}, err
	}
	parts := len(f.Parts())
	if err := f.Close(); err != nil {
		return Details{}, err
	}
	return details(model, parts, mmproj)
}
