package engine

import (
	"fmt"

	"github.com/inkling-go/inkling/models"
)

// MaxDraft bounds the tokens that are guessed ahead. With the token that is known
// they are the few rows that a step computes in one graph, and that a sequence can
// be cut back by.
const MaxDraft = 15

// NoDraft is the value of Options.Draft for no guesses.
const NoDraft = -1

// What is guessed at most where nobody says how much. Few machines gain by more, and
// a depth that is loaded takes memory, wanted or not.
const (
	autoDepths = 2
	autoNGram  = 5
)

// checkDraft finds options that make no sense.
func (o *Options) checkDraft() error {
	if o.Draft < NoDraft || o.Draft > MaxDraft {
		return fmt.Errorf("draft: %d, want 0 (as many as pay) to %d, or %d for none", o.Draft, MaxDraft, NoDraft)
	}
	return nil
}

// openMTP opens the file of the layers for multi-token prediction, if they are
// wanted and not in the model's own.
func (e *Engine) openMTP() (err error) {
	path := e.opt.MTP
	switch {
	case e.opt.depths() == 0:
		return nil
	case path == "":
		if path, err = FindMTP(e.opt.Model); path == "" || err != nil {
			return err
		}
	}
	e.mtp, err = models.OpenFile(path)
	return err
}

// depths is how many of them are loaded.
func (o *Options) depths() int {
	switch {
	case o.MTP == "off" || o.Draft == NoDraft || o.NGram:
		return 0
	case o.Draft > 0:
		return o.Draft
	}
	return autoDepths
}
