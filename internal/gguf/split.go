package gguf

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/inkling-go/inkling/internal/mapped"
)

// Keys that llama.cpp's gguf-split writes into each part of a split model. The
// number is zero-based, unlike the one in the file's name.
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count" // of all parts together
)

// split says which part of which model a file is.
type split struct {
	no, count int
	prefix    string // path of the parts up to "-00001-of-00002.gguf"
}

// splitName is the end of a part's name: its number from 1 and the number of parts.
var splitName = regexp.MustCompile(`-(\d{5})-of-(\d{5})\.gguf$`)

// partPath returns the path of part no, counted from 0.
func (s split) partPath(no int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", s.prefix, no+1, s.count)
}

// split reads the split keys of the file at path. A file without them is part 0 of 1.
func (h *header) split(path string) (split, error) {
	one := split{count: 1}
	count, err := h.splitInt(keySplitCount, 1, 1<<16-1)
	if err != nil || count <= 1 {
		return one, wrapPath(path, err)
	}
	no, err := h.splitInt(keySplitNo, -1, count-1)
	if err != nil {
		return one, wrapPath(path, err)
	}
	if no < 0 {
		return one, wrapPath(path, formatErrorf(h.values[keySplitCount].off,
			"key %q is %d and key %q is absent", keySplitCount, count, keySplitNo))
	}
	m := splitName.FindStringSubmatch(path)
	if m == nil {
		return one, wrapPath(path, formatErrorf(h.values[keySplitCount].off,
			"part %d of %d, so the file's name must end in -%05d-of-%05d.gguf", no+1, count, no+1, count))
	}
	s := split{no: no, count: count, prefix: path[:len(path)-len(m[0])]}
	if want := s.partPath(no); path != want {
		return one, wrapPath(path, formatErrorf(h.values[keySplitNo].off,
			"part %d of %d, so the file's name must be %s", no+1, count, filepath.Base(want)))
	}
	return s, nil
}

// splitInt returns the integer at key, or def if it is absent.
func (h *header) splitInt(key string, def, limit int) (int, error) {
	val, ok := h.values[key]
	if !ok {
		return def, nil
	}
	n, ok := toUint(val.v)
	if !ok || n > uint64(limit) {
		return 0, formatErrorf(val.off, "key %q is %s, want an integer from 0 to %d", key, describe(val.v), limit)
	}
	return int(n), nil
}

// openSplit opens the parts besides part s.no, which is f.parts[0] with header h,
// and returns the header of the whole model: the first part's keys, all tensors.
func (f *File) openSplit(s split, h *header) (*header, error) {
	headers := make([]*header, s.count)
	parts := make([]*mapped.File, s.count)
	headers[s.no], parts[s.no] = h, f.parts[0]
	for i := range s.count {
		if i == s.no {
			continue
		}
		var err error
		if parts[i], headers[i], err = s.openPart(i); err != nil {
			return nil, fmt.Errorf("part %d of %d: %w", i+1, s.count, err)
		}
		f.parts = append(f.parts, parts[i]) // for Close, should a later one fail
	}
	f.parts = parts
	return s.merge(headers)
}

// openPart opens part no and checks that it says so.
func (s split) openPart(no int) (*mapped.File, *header, error) {
	path := s.partPath(no)
	m, h, err := openPart(path)
	if err != nil {
		return nil, nil, err
	}
	got, err := h.split(path)
	if err == nil && got.count != s.count {
		err = wrapPath(path, formatErrorf(h.values[keySplitCount].off,
			"key %q is absent or not %d", keySplitCount, s.count))
	}
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, h, nil
}

// merge joins the tensors of all parts and checks their number and names.
func (s split) merge(headers []*header) (*header, error) {
	all := &header{keys: headers[0].keys, values: headers[0].values}
	partOf := make(map[string]int)
	for i, h := range headers {
		for _, t := range h.tensors {
			if j, dup := partOf[t.Name]; dup {
				return nil, wrapPath(s.partPath(i), formatErrorf(0, "tensor %q is also in part %d", t.Name, j+1))
			}
			partOf[t.Name] = i
			t.Part = i
			all.tensors = append(all.tensors, t)
		}
	}
	for i, h := range headers {
		n, err := h.splitInt(keySplitTensors, len(all.tensors), 1<<31-1)
		if err == nil && n != len(all.tensors) {
			err = formatErrorf(h.values[keySplitTensors].off,
				"key %q is %d, the parts have %d tensors", keySplitTensors, n, len(all.tensors))
		}
		if err != nil {
			return nil, wrapPath(s.partPath(i), err)
		}
	}
	return all, nil
}

func wrapPath(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}
