package locate

import (
	"context"
	"io"

	"github.com/inkling-go/inkling/internal/engine"
)

// Files are the files of a model: paths, empty where it has none.
type Files struct {
	Model, MMProj, MTP string
}

// Find finds the files of a model that is named as people do: the path of a
// GGUF file, the folder of a checkpoint, which is converted, or a name of the
// store. The projector beside a file is its own, unless mmproj is another file or
// "off".
func Find(ctx context.Context, name, mmproj string, stderr io.Writer) (m Files, err error) {
	found, err := localModel(ctx, name, stderr)
	if err != nil {
		return m, err
	}
	m = Files{found.Path, found.MMProj, found.MTP}
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
