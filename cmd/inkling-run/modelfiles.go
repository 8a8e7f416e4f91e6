package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// modelFiles are the files of a model: paths, empty where it has none.
type modelFiles struct {
	Model, MMProj, MTP string
}

// findModel finds the files of a model that is named as people do: the path of a
// GGUF file, the folder of a checkpoint, which is converted, or a name of the
// store. The projector beside a file is its own, unless mmproj is another file or
// "off".
func findModel(ctx context.Context, name, mmproj string, stderr io.Writer) (m modelFiles, err error) {
	st, err := os.Stat(name)
	switch {
	case err == nil && st.IsDir():
		if err := notCheckpoint(name); err != nil {
			return m, err
		}
		if m.Model, err = convertCached(ctx, name, stderr); err != nil {
			return m, err
		}
	case err == nil:
		m.Model = name
	case !errors.Is(err, fs.ErrNotExist) || looksLikePath(name):
		return m, err
	default:
		s, err := store.Open("")
		if err != nil {
			return m, err
		}
		found, err := s.Resolve(name)
		if err != nil {
			return m, err
		}
		m = modelFiles{found.Model, found.MMProj, found.MTP}
	}
	switch {
	case mmproj == "off":
		m.MMProj = ""
	case mmproj != "":
		m.MMProj = mmproj
	case m.MMProj == "":
		m.MMProj, err = engine.FindProjector(m.Model)
	}
	return m, err
}

// looksLikePath reports whether a name that is no file was meant to be one.
func looksLikePath(name string) bool {
	return strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/")
}
