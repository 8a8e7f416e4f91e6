package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/inkling-go/inkling/internal/store"
)

// foundModel is what a model's name on the command line stands for.
type foundModel struct {
	Path        string       // text GGUF
	MMProj, MTP string       // of a model of the store, empty where it has none
	Stored      *store.Model // with its settings; nil for a path
}

// resolveModel finds a model that is named as people do: the path of a GGUF file,
// the folder of a checkpoint, which is converted, a name of the store, or one of
// the hub, hf.co/ORG/REPO[:QUANT], which is pulled if the store does not have it.
// A path that exists comes before a name.
func resolveModel(ctx context.Context, name string, stderr io.Writer) (*foundModel, error) {
	m, err := localModel(ctx, name, stderr)
	if !errors.Is(err, store.ErrNotFound) {
		return m, err
	}
	if n, bad := store.ParseName(name); bad != nil || !n.OnHub() {
		return nil, err
	}
	stored, err := pullModel(ctx, name, stderr)
	if err != nil {
		return nil, err
	}
	return fromStore(stored), nil
}

// localModel is resolveModel for what this machine has: nothing is pulled.
func localModel(ctx context.Context, name string, stderr io.Writer) (*foundModel, error) {
	m, err := lookUpModel(name)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(m.Path)
	if err != nil || !st.IsDir() {
		return m, err
	}
	if err := notCheckpoint(m.Path); err != nil {
		return nil, err
	}
	m.Path, err = convertCached(ctx, m.Path, stderr)
	return m, err
}

// lookUpModel is localModel without the conversion: the path may be a folder.
func lookUpModel(name string) (*foundModel, error) {
	_, err := os.Stat(name)
	if err == nil {
		return &foundModel{Path: name}, nil
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

func fromStore(m *store.Model) *foundModel {
	return &foundModel{Path: m.Model, MMProj: m.MMProj, MTP: m.MTP, Stored: m}
}

// looksLikePath reports whether a name that is no file was meant to be one.
func looksLikePath(name string) bool {
	return strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~")
}

// pullModel pulls from the hub, with progress on a terminal.
func pullModel(ctx context.Context, name string, stderr io.Writer) (*store.Model, error) {
	s, err := store.Open("")
	if err != nil {
		return nil, err
	}
	show, done := storeProgress(stderr)
	m, err := s.Pull(ctx, name, show)
	done(err)
	return m, err
}

// wantModelFile is an error for what is there but no file: opening a named pipe
// may wait for ever.
func wantModelFile(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	return wantFile(path, st)
}

// notCheckpoint says what a folder without a checkpoint holds instead.
func notCheckpoint(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "config.json")); !errors.Is(err, fs.ErrNotExist) {
		return nil // or the converter says what is wrong
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: neither a checkpoint (config.json) nor GGUF files are in this folder", dir)
	}
	return fmt.Errorf("%s: no checkpoint is in this folder (config.json); name one of its GGUF files, such as %s", dir, files[0])
}
