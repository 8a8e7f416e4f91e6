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
	if !st.Mode().IsRegular() { // opening a pipe would wait for its other end
		return nil, fmt.Errorf("%s: %w", path, formatErrorf(0, "not a regular file"))
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
	ix := &index{shardOf: make(map[string]string)}
	err = s.object("index", func(key string) error {
		if key != "weight_map" {
			return s.skip()
		}
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
	if err == nil && len(ix.names) == 0 {
		err = formatErrorf(0, "weight_map is absent or empty")
	}
	if err != nil {
		return nil, err
	}
	return ix, nil
}

// byShard returns the names of each shard's tensors.
func (ix *index) byShard() map[string][]string {
	tensors := make(map[string][]string)
	for _, name := range ix.names {
		shard := ix.shardOf[name]
		tensors[shard] = append(tensors[shard], name)
	}
	return tensors
}

// drop takes the tensors of shards out of the index.
func (ix *index) drop(shards []*MissingShardError) {
	for _, shard := range shards {
		for _, name := range shard.Tensors {
			delete(ix.shardOf, name)
		}
	}
	ix.names = slices.DeleteFunc(ix.names, func(name string) bool { return ix.shardOf[name] == "" })
}

// isFileName reports whether s names a file in the checkpoint's own folder on
// every system: an index must not lead anywhere else.
func isFileName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\:\x00")
}
