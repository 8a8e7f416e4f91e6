package safetensors

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// IndexName is the file that says which shard holds which tensor.
const IndexName = "model.safetensors.index.json"

// index is the weight_map of an index file.
type index struct {
	names   []string          // in the order of the file
	shardOf map[string]string // file name by tensor name
}

// readIndex reads the index file at path.
func readIndex(path string) (*index, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxHeader {
		return nil, fmt.Errorf("%s: %w", path, formatErrorf(0, "index of %d bytes, want at most %d", st.Size(), maxHeader))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	ix, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ix, nil
}

// parseIndex reads the JSON of an index: an object with weight_map, an object of
// tensor names and file names. Its other fields say nothing that the shards do not.
func parseIndex(text []byte) (*index, error) {
	s, err := newScanner(text, 0)
	if err != nil {
		return nil, err
	}
	var ix *index
	err = s.object("index", func(key string) error {
		if key != "weight_map" {
			return s.skip()
		}
		ix = &index{shardOf: make(map[string]string)}
		return s.object(key, func(name string) error {
			shard, err := s.str("tensor " + name)
			if err != nil {
				return err
			}
			if !isFileName(shard) {
				return formatErrorf(s.at(), "tensor %q: shard %q is not a plain file name", name, shard)
			}
			ix.names = append(ix.names, name)
			ix.shardOf[name] = shard
			return nil
		})
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && len(ix.get()) == 0 {
		err = formatErrorf(0, "index without weight_map, or with an empty one")
	}
	return ix, err
}

func (ix *index) get() []string {
	if ix == nil {
		return nil
	}
	return ix.names
}

// drop takes tensors out of the index.
func (ix *index) drop(tensors []string) {
	for _, name := range tensors {
		delete(ix.shardOf, name)
	}
	ix.names = slices.DeleteFunc(ix.names, func(name string) bool { return ix.shardOf[name] == "" })
}

// isFileName reports whether s names a file in the checkpoint's own folder on
// every system: an index must not lead anywhere else.
func isFileName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\:\x00")
}
