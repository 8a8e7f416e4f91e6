package measurecmd

import (
	"context"
	"fmt"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
)

// find finds the files of a model; its projector only if towers are measured, and then
// it must have one.
func (o *benchOptions) find(ctx context.Context, name string) (locate.Files, error) {
	if !o.c.Bool("towers") {
		return locate.Find(ctx, name, "off", o.c.App.ErrWriter)
	}
	files, err := locate.Find(ctx, name, o.c.String("mmproj"), o.c.App.ErrWriter)
	if err == nil && files.MMProj == "" {
		err = fmt.Errorf("%s: --towers: the model has no projector (no mmproj file beside it): name one by --mmproj", name)
	}
	return files, err
}
