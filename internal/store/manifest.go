package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// manifestVersion is raised when older programs would misread a manifest.
const manifestVersion = 1

// maxManifest bounds the bytes of a manifest, and with it what a Modelfile holds.
const maxManifest = 16 << 20

// manifest is the file of a model below manifests.
type manifest struct {
	Version  int       `json:"version"`
	Name     string    `json:"name"` // as it was written
	Modified time.Time `json:"modified"`
	Source   string    `json:"source,omitempty"`
	Details  Details   `json:"details"`
	content
}

// content is what makes two models the same, whatever they are called.
type content struct {
	Files    []File    `json:"files"`
	Params   Params    `json:"params"`
	System   string    `json:"system,omitempty"`
	Template string    `json:"template,omitempty"`
	Messages []Message `json:"messages,omitempty"`
	License  []string  `json:"license,omitempty"`
}

// digest is the sha256:HEX of the content in JSON.
func (c *content) digest() (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// readManifest reads and checks the file of a manifest. Its name is checked to be
// that of its place.
func readManifest(path, place string) (*manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%s: more than %d bytes", path, maxManifest)
	}
	m := new(manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := m.check(place); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func (m *manifest) check(place string) error {
	if m.Version != manifestVersion {
		return fmt.Errorf("version %d, this program reads %d", m.Version, manifestVersion)
	}
	n, err := ParseName(m.Name)
	if err != nil {
		return err
	}
	if n.path() != place {
		return fmt.Errorf("it is of %s, whose place is %s", m.Name, n.path())
	}
	if err := checkFiles(m.Files); err != nil {
		return err
	}
	return m.Params.check()
}

// fileName is what a file of a model may be called: it becomes a path.
var fileName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+=@,~ -]{0,230}\.gguf$`)

// digestForm is the written form of a blob's hash.
var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// checkFiles checks that the files make a model, and that their names are names.
func checkFiles(files []File) error {
	if len(files) == 0 || files[0].Role != RoleModel {
		return errors.New("no file of the model")
	}
	names, roles := map[string]bool{}, map[Role]int{}
	for _, f := range files {
		switch {
		case !fileName.MatchString(f.Name):
			return fmt.Errorf("file name %q", f.Name)
		case names[strings.ToLower(f.Name)]:
			return fmt.Errorf("two files are called %s", f.Name)
		case !digestForm.MatchString(f.Digest):
			return fmt.Errorf("%s: digest %q", f.Name, f.Digest)
		case f.Size < 0:
			return fmt.Errorf("%s: size %d", f.Name, f.Size)
		case f.Role != RoleModel && f.Role != RoleMMProj && f.Role != RoleMTP:
			return fmt.Errorf("%s: role %q", f.Name, f.Role)
		case f.Role != RoleModel && roles[f.Role] > 0:
			return fmt.Errorf("%s: a second file for %s", f.Name, f.Role)
		}
		names[strings.ToLower(f.Name)] = true
		roles[f.Role]++
	}
	return nil
}

// writeManifest puts a manifest in the place of the one before. The store's lock
// is held exclusively.
func (s *Store) writeManifest(n Name, m *manifest) error {
	data, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	if len(data) >= maxManifest {
		return fmt.Errorf("%s: system message, template and license have more than %d bytes together", n, maxManifest)
	}
	path := s.manifestPath(n)
	if err := s.mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return writeFile(path, append(data, '\n'))
}

// writeFile replaces a file as a whole, durably: a killed process or a lost power
// supply leaves the old one or the new one.
func writeFile(path string, data []byte) error {
	partial := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+partialSuffix) // no name begins with a dot
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(data))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(partial))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
