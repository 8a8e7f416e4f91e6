package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

const (
	// maxHeader bounds the header of a file and an index, as the reference
	// implementation does: JSON takes several times its size in memory.
	maxHeader = 100_000_000
	// maxDims bounds a shape; the format has no limit, no framework uses more.
	maxDims     = 16
	prefixBytes = 8 // header length
	metadataKey = "__metadata__"
)

// parseHeader returns the tensors of the file data, which is called shard, in the
// order of their data.
func parseHeader(shard string, data []byte) ([]Tensor, error) {
	if bytes.HasPrefix(data, []byte("version https://git-lfs")) {
		return nil, formatErrorf(0, "a git-lfs pointer, not the file it points to")
	}
	if len(data) < prefixBytes {
		return nil, formatErrorf(0, "%d bytes, want at least %d", len(data), prefixBytes)
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader {
		return nil, formatErrorf(0, "header of %d bytes, want at most %d", n, maxHeader)
	}
	if n > uint64(len(data)-prefixBytes) {
		return nil, formatErrorf(0, "header of %d bytes, the file has %d more", n, len(data)-prefixBytes)
	}
	dataStart := prefixBytes + int64(n)
	text := data[prefixBytes:dataStart]
	if !bytes.HasPrefix(text, []byte("{")) {
		return nil, formatErrorf(prefixBytes, "header does not start with {")
	}
	s, err := newScanner(text, prefixBytes)
	if err != nil {
		return nil, err
	}
	var tensors []Tensor
	err = s.object("header", func(key string) error {
		if key == metadataKey {
			return s.object(metadataKey, func(key string) error {
				_, err := s.str(metadataKey + "." + key)
				return err
			})
		}
		t, err := s.tensor(key)
		t.Shard = shard
		tensors = append(tensors, t)
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size))
	})
	return tensors, place(tensors, dataStart, int64(len(data)))
}

// tensor reads the value of a tensor's key. Offset is from the start of the data.
func (s *scanner) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []int64
	start := s.at()
	what := "tensor " + name
	err := s.object(what, func(key string) error {
		var err error
		switch key {
		case "dtype":
			var d string
			d, err = s.str(what)
			t.DType = DType(d)
		case "shape":
			t.Shape, err = s.sizes(maxDims, what+": shape")
		case "data_offsets":
			offsets, err = s.sizes(2, what+": data_offsets")
		default:
			err = formatErrorf(s.at(), "%s: unknown field %q", what, key)
		}
		return err
	})
	switch {
	case err != nil:
		return t, err
	case t.DType == "" || t.Shape == nil || len(offsets) != 2:
		return t, formatErrorf(start, "%s: want dtype, shape and two data_offsets", what)
	case t.DType.Bits() == 0:
		return t, unsupportedf("%s: dtype %q", what, t.DType)
	}
	size, err := dataBytes(t.DType, t.Shape)
	if err != nil {
		return t, formatErrorf(start, "%s: %v", what, err)
	}
	begin, end := offsets[0], offsets[1]
	if end < begin || end-begin != size {
		return t, formatErrorf(start, "%s: data_offsets [%d, %d], want %d bytes for %s %v",
			what, begin, end, size, t.DType, t.Shape)
	}
	t.Offset, t.Size = begin, size
	return t, nil
}

// place checks that tensors, sorted by offset, cover the data from dataStart to
// fileSize exactly, and turns their offsets into ones from the start of the file.
func place(tensors []Tensor, dataStart, fileSize int64) error {
	next := int64(0)
	for i := range tensors {
		t := &tensors[i]
		switch {
		case t.Offset > next:
			return formatErrorf(dataStart+next, "hole of %d bytes before tensor %q", t.Offset-next, t.Name)
		case t.Offset < next:
			return formatErrorf(dataStart+t.Offset, "tensor %q overlaps the one before it", t.Name)
		case t.Size > fileSize-dataStart-next:
			return formatErrorf(dataStart+next, "tensor %q has %d bytes, the file has %d more",
				t.Name, t.Size, fileSize-dataStart-next)
		}
		t.Offset += dataStart
		next += t.Size
	}
	if rest := fileSize - dataStart - next; rest != 0 {
		return formatErrorf(dataStart+next, "%d bytes after the last tensor", rest)
	}
	return nil
}
