package main

import (
	"context"
	"io"

	"github.com/inkling-go/inkling/internal/engine"
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
	found, err := localModel(ctx, name, stderr)
	if err != nil {
		return m, err
	}
	m = modelFiles{found.Path, found.MMProj, found.MTP}
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
