package engine

import (
	"context"

	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/models"
)

// openBackend chooses the devices for the model and opens them.
func (e *Engine) openBackend() (err error) {
	s := devices.Subject{
		Model: e.text, Context: e.opt.Context, Parallel: e.opt.Parallel,
		UBatch: e.opt.UBatch, KV: e.opt.KV, NoMmap: e.opt.NoMmap, MTP: e.mtp, MTPDepths: e.opt.depths(),
	}
	path, err := e.projectorPath()
	if err != nil {
		return err
	}
	if path != "" {
		if s.MMProj, err = models.OpenFile(path); err != nil {
			return err
		}
		defer s.MMProj.Close()
	}
	if e.choice, err = devices.Choose(e.opt.Devices, s); err != nil {
		return err
	}
	e.be, err = e.choice.Open(e.opt.Threads)
	return err
}

// projectorPath is the mmproj file that was named or lies beside the model, empty for none.
func (e *Engine) projectorPath() (string, error) {
	switch path := e.opt.MMProj; path {
	case "off":
		return "", nil
	case "":
		return FindProjector(e.opt.Model)
	default:
		return path, nil
	}
}

// Choice says which devices the model is on. It is not to be changed.
func (e *Engine) Choice() *devices.Choice { return e.choice }

// splitter is a model that knows into how many parts its graphs are cut.
type splitter interface{ Splits() int }

// Splits is the number of parts that the last graphs were cut into, each of which
// ran on one device: 1 if nothing had to cross over.
func (e *Engine) Splits(ctx context.Context) (n int, err error) {
	err = e.do(ctx, func() error {
		n = 1
		if m, ok := e.model.(splitter); ok {
			n = m.Splits()
		}
		return nil
	})
	return n, err
}
