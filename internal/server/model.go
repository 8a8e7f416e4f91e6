package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// Model is what a name stands for: files, and how to use them.
type Model struct {
	Name   string // as lists show it
	Path   string // text GGUF
	MMProj string // projector GGUF; empty: none

	Size     int64 // of the files, in bytes
	Modified time.Time

	Stored *store.Model // with its settings; nil for a file
}

// catalog knows the models that can be asked for.
type catalog struct {
	named []*Model     // on the command line
	store *store.Store // nil: none
}

// FileModel is a model that is a file and not in the store: its name is the
// file's without .gguf, and the path as it was given is another.
func FileModel(path string) (*Model, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, fmt.Errorf("%s: is a folder, want a GGUF file", path)
	}
	role, err := store.RoleOf(path, path)
	switch {
	case err != nil:
		return nil, err
	case role != store.RoleModel:
		return nil, fmt.Errorf("%s: is a file of the kind %s, which belongs beside a model and is found there: name the model", path, role)
	}
	mmproj, err := engine.FindProjector(path)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(path), ".gguf")
	return &Model{Name: name, Path: path, MMProj: mmproj, Size: st.Size(), Modified: st.ModTime()}, nil
}

// resolve finds a model by name. As Ollama has it the tag latest may be left out,
// and capitals do not matter; without a name it is the only one there is.
func (c *catalog) resolve(name string) (*Model, error) {
	if name == "" {
		if len(c.named) == 1 {
			return c.named[0], nil
		}
		return nil, invalid("model", "is missing")
	}
	for _, m := range c.named {
		if name == m.Path || strings.EqualFold(strings.TrimSuffix(name, ":latest"), m.Name) {
			return m, nil
		}
	}
	if c.store == nil {
		return nil, modelNotFound(name, nil)
	}
	stored, err := c.store.Resolve(name)
	var bad *store.NameError
	switch {
	case errors.Is(err, store.ErrNotFound), errors.As(err, &bad):
		return nil, modelNotFound(name, err)
	case err != nil:
		return nil, err
	}
	return storedModel(stored), nil
}

// maxNameShown bounds, in characters, what a message repeats of a name that nobody
// has.
const maxNameShown = 100

func modelNotFound(name string, cause error) *Error {
	e := &Error{Status: http.StatusNotFound, Code: codeModelNotFound, Message: fmt.Sprintf("model %.*q not found", maxNameShown, name), cause: cause}
	var near *store.NotFoundError
	if errors.As(cause, &near) && len(near.Near) > 0 {
		e.Message += "; there is " + strings.Join(near.Near, ", ")
	}
	return e
}

func storedModel(m *store.Model) *Model {
	return &Model{Name: m.Name, Path: m.Model, MMProj: m.MMProj, Size: m.Size, Modified: m.Modified, Stored: m}
}

// list returns all models, those of the command line first. Models of the store
// that cannot be read are left out.
func (c *catalog) list() []*Model {
	all := slices.Clone(c.named)
	if c.store == nil {
		return all
	}
	stored, _ := c.store.List() // inkling-run doctor says what is wrong with the others
	for _, m := range stored {
		all = append(all, storedModel(m))
	}
	return all
}

// fingerprint tells apart what made an answer: the program and the model's files.
func (m *Model) fingerprint(version string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %d", version, m.Name, m.Size, m.Modified.UnixNano()))
	return "fp_" + hex.EncodeToString(sum[:5])
}

// splitName is the name of the first of several files that make one GGUF.
var splitName = regexp.MustCompile(`^(.*)-00001-of-([0-9]{5})\.gguf$`)

// fileState tells whether a file is still the one that was loaded.
type fileState struct {
	path string
	info os.FileInfo
}

// states looks at the files of a model.
func (m *Model) states() ([]fileState, error) {
	paths := []string{m.Path}
	if s := splitName.FindStringSubmatch(m.Path); s != nil {
		more, err := filepath.Glob(escapeGlob(s[1]) + "-[0-9][0-9][0-9][0-9][0-9]-of-" + s[2] + ".gguf")
		if err != nil {
			return nil, err
		}
		paths = more // the first is among them
	}
	for _, p := range []string{m.MMProj, m.mtp()} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	var all []fileState
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		all = append(all, fileState{p, info})
	}
	return all, nil
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// mtp is the GGUF of the layers for multi-token prediction that the engine finds;
// empty: none, or several, about which the engine has an error.
func (m *Model) mtp() string {
	if m.Stored != nil {
		return m.Stored.MTP
	}
	path, err := engine.FindMTP(m.Path)
	if err != nil {
		return ""
	}
	return path
}

// changed reports whether a file was written, replaced or removed.
func changed(files []fileState) bool {
	for _, f := range files {
		now, err := os.Stat(f.path)
		if err != nil || !os.SameFile(now, f.info) || now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()) {
			return true
		}
	}
	return false
}
