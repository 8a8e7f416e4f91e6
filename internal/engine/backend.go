package engine

import (
	"cmp"
	"context"
	"reflect"

	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/models"
)

// promptRows is how many rows of a prompt one graph has where nothing is said. On GPUs it is up to
// Options.Batch: an expert is read once for all rows that chose it.
const promptRows = 512

// openBackend chooses the devices for the model and opens them.
func (e *Engine) openBackend() (err error) {
	s := devices.Subject{
		Model: e.text, Context: e.opt.Context, Parallel: e.opt.Parallel,
		KV: e.opt.KV, NoMmap: e.opt.NoMmap, MTP: e.mtp, MTPDepths: e.opt.depths(),
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
	if err := e.choose(s); err != nil {
		return err
	}
	e.be, err = e.choice.Open(e.opt.Threads)
	return err
}

// choose finds the devices, and how many rows of a prompt are computed at once: on GPUs more
// than elsewhere, if that moves nothing of the model away from them.
func (e *Engine) choose(s devices.Subject) (err error) {
	s.UBatch = min(cmp.Or(e.opt.UBatch, promptRows), e.opt.Batch)
	if e.choice, err = devices.Choose(e.opt.Devices, s); err != nil {
		return err
	}
	e.rows, e.rowsBusy = s.UBatch, s.UBatch
	if e.opt.UBatch > 0 || e.opt.Batch <= promptRows || !e.choice.Fuses() {
		return nil
	}
	s.UBatch = e.opt.Batch
	if larger, err := devices.Choose(e.opt.Devices, s); err == nil && reflect.DeepEqual(larger.Place, e.choice.Place) {
		e.choice, e.rows = larger, s.UBatch
	}
	return nil
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
