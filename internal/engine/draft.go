package engine

import (
	"fmt"

	"github.com/inkling-go/inkling/models"
)

// NoDraft is the value of Options.Draft for no guesses.
const NoDraft = -1

// What is guessed at most where nobody says how much. All depths that are loaded
// are computed in every round, and few machines gain by more than these.
const (
	autoDepths = 3
	autoNGram  = 5
)

// checkDraft finds options that make no sense.
func (o *Options) checkDraft() error {
	if o.Draft < NoDraft || o.Draft > maxDraft {
		return fmt.Errorf("draft: %d, want 0 (as many as pay) to %d, or %d for none", o.Draft, maxDraft, NoDraft)
	}
	if len(o.Accept) > maxDraft {
		return fmt.Errorf("accept: %d rates, want at most %d", len(o.Accept), maxDraft)
	}
	for _, r := range o.Accept {
		if !(r >= 0 && r <= 1) {
			return fmt.Errorf("accept: %g, want 0 to 1", r)
		}
	}
	return nil
}

// openMTP adds the layers for multi-token prediction to what is loaded, if they
// are wanted and there.
func (e *Engine) openMTP(p *models.Params) (err error) {
	path := e.opt.MTP
	switch {
	case path == "off" || e.opt.Draft == NoDraft || e.opt.NGram:
		return nil
	case path == "":
		if path, err = FindMTP(e.opt.Model); path == "" || err != nil {
			return err
		}
	}
	if e.mtp, err = models.OpenFile(path); err != nil {
		return err
	}
	p.MTP, p.MTPDepths = e.mtp, autoDepths
	if e.opt.Draft > 0 {
		p.MTPDepths = e.opt.Draft
	}
	return nil
}
