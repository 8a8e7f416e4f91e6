// Package locate finds the files of a model that is named as people do: a path, the folder
// of a checkpoint, a name of the store or of the hub.
package locate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/progress"
	"github.com/inkling-go/inkling/internal/store"
)

// Model is what a model's name on the command line stands for.
type Model struct {
	Path        string       // text GGUF
	MMProj, MTP string       // of a model of the store, empty where it has none
	Stored      *store.Model // with its settings; nil for a path
}

// Resolve finds a model that is named as people do: the path of a GGUF file,
// the folder of a checkpoint, which is converted, a name of the store, or one of
// the hub, hf.co/ORG/REPO[:QUANT], which is pulled if the store does not have it.
// A path that exists comes before a name.
func Resolve(ctx context.Context, name string, stderr io.Writer) (*Model, error) {
	m, err := localModel(ctx, name, stderr)
	if !errors.Is(err, store.ErrNotFound) {
		return m, err
	}
	if n, bad := store.ParseName(name); bad != nil || !n.OnHub() {
		return nil, err
	}
	stored, err := Pull(ctx, name, stderr)
	if err != nil {
		return nil, err
	}
	return fromStore(stored), nil
}

// localModel is Resolve for what this machine has: nothing is pulled.
func localModel(ctx context.Context, name string, stderr io.Writer) (*Model, error) {
	m, err := LookUp(name)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(m.Path)
	if err != nil || !st.IsDir() {
		return m, err
	}
	if err := NotCheckpoint(m.Path); err != nil {
		return nil, err
	}
	m.Path, err = convertCached(ctx, m.Path, stderr)
	return m, err
}

// LookUp is localModel without the conversion: the path may be a folder.
func LookUp(name string) (*Model, error) {
	_, err := os.Stat(name)
	if err == nil {
		return &Model{Path: name}, nil
	}
	if err := CheckLink(name); err != nil {
		return nil, err
	}
	if !errors.Is(err, fs.ErrNotExist) || looksLikePath(name) {
		return nil, err
	}
	s, err := store.Open("")
	if err != nil {
		return nil, err
	}
	stored, err := s.Resolve(name)
	var bad *store.NameError
	switch {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("there is no file %q, and it is no name of a model: %s", name, bad.Why)
	case err != nil:
		return nil, err
	}
	return fromStore(stored), nil
}

// CheckLink is an error for a link whose file is not there, which else is taken
// for a name.
func CheckLink(path string) error {
	to, err := os.Readlink(path)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is a link to %s, which is not there", path, to)
	}
	return nil
}

func fromStore(m *store.Model) *Model {
	return &Model{Path: m.Model, MMProj: m.MMProj, MTP: m.MTP, Stored: m}
}

// looksLikePath reports whether a name that is no file was meant to be one.
func looksLikePath(name string) bool {
	return strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~")
}

// Pull pulls from the hub, with progress on a terminal.
func Pull(ctx context.Context, name string, stderr io.Writer) (*store.Model, error) {
	s, err := store.Open("")
	if err != nil {
		return nil, err
	}
	show, done := progress.Store(stderr)
	m, err := s.Pull(ctx, name, show)
	done(err)
	return m, err
}

// WantFile is an error for what is there but no file: opening a named pipe
// may wait for ever.
func WantFile(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return files.WantRegular(path, st)
}

// NotCheckpoint says what a folder without a checkpoint holds instead.
func NotCheckpoint(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "config.json")); !errors.Is(err, fs.ErrNotExist) {
		return nil // or the converter says what is wrong
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: neither a checkpoint (config.json) nor GGUF files are in this folder", dir)
	}
	return fmt.Errorf("%s: no checkpoint is in this folder (config.json); name one of its GGUF files, such as %s", dir, files[0])
}
