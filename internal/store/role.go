package store

import (
	"path/filepath"
	"strings"

	"github.com/inkling-go/inkling/internal/gguf"
)

// RoleOf says what the GGUF file at path is for by its header, and by the name it
// goes by, as the layers for multi-token prediction are of the model's own
// architecture.
func RoleOf(path, name string) (Role, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	arch, err := f.Str(architectureKey)
	switch {
	case err != nil:
		return "", err
	case arch == clip:
		return RoleMMProj, nil
	case strings.HasPrefix(strings.ToLower(filepath.Base(name)), "mtp-"):
		return RoleMTP, nil
	}
	return RoleModel, nil
}

// files lists what was chosen with the role of each.
func (c *chosen) files() []File {
	var files []File
	for _, name := range c.model {
		files = append(files, File{Role: RoleModel, Name: name})
	}
	if c.mmproj != "" {
		files = append(files, File{Role: RoleMMProj, Name: c.mmproj})
	}
	if c.mtp != "" {
		files = append(files, File{Role: RoleMTP, Name: c.mtp})
	}
	return files
}
