package engine

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/inkling-go/inkling/binding"
)

// Stats counts what the engine has done since Open, and what it is at.
type Stats struct {
	Requests uint64 // ended, in whatever way
	Rejected uint64 // of them, with ErrBusy
	Failed   uint64 // of them, with another error

	PromptTokens    uint64 // rows of prompts, the cached ones included
	CachedTokens    uint64
	GeneratedTokens uint64
	PromptTime      time.Duration // of all requests, one after another
	GenerateTime    time.Duration

	Steps   uint64   // calls of the model
	Batches []uint64 // [Parallel+1]: steps by the number of sequences in them

	Drafts                              Drafts        // of all requests
	DraftTime, VerifyTime, RollbackTime time.Duration // of the steps with guesses: guessing, computing, forgetting what was wrong

	Active, Waiting int // requests now
	Memory          Memory
	Reads           binding.Reads // of experts, if the model is larger than memory; else zero
}

// counters are the Stats that the owner and the callers write.
type counters struct {
	mu sync.Mutex
	s  Stats
	be *binding.Backend
}

// open measures what does not change any more.
func (c *counters) open(e *Engine) (err error) {
	c.be, c.s.Batches = e.be, make([]uint64, e.opt.Parallel+1)
	c.s.Memory, err = e.memory()
	return err
}

// count adds a request that has ended; res is nil if it had not begun.
func (c *counters) count(res *Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Requests++
	switch {
	case errors.Is(err, ErrBusy):
		c.s.Rejected++
	case err != nil:
		c.s.Failed++
	}
	if res == nil {
		return
	}
	c.s.PromptTokens += uint64(res.PromptTokens)
	c.s.CachedTokens += uint64(res.Cached)
	c.s.GeneratedTokens += uint64(res.GeneratedTokens)
	c.s.PromptTime += res.PromptTime
	c.s.GenerateTime += res.GenerateTime
}

// step counts a call of the model for n sequences.
func (c *counters) step(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Steps++
	c.s.Reads, _ = c.be.Reads()
	c.s.Batches[n]++
}

// round counts the guesses of a step.
func (c *counters) round(r *round) {
	if r.n == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Drafts.sum(r.checked)
	c.s.DraftTime += r.guessed.Sub(r.start)
	c.s.VerifyTime += r.computed.Sub(r.guessed)
	c.s.RollbackTime += r.rollback
}

// gauge notes what the scheduler is at.
func (c *counters) gauge(s *scheduler) {
	active := 0
	for _, sl := range s.slots {
		if sl.t != nil {
			active++
		}
	}
	saved := s.bytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Active, c.s.Waiting, c.s.Memory.Saved = active, len(s.waiting), saved
}

// Stats is a snapshot. It does not wait for a step to end.
func (e *Engine) Stats() Stats {
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	s := e.stats.s
	s.Batches = slices.Clone(s.Batches)
	s.Drafts = Drafts{s.Drafts.Rounds, slices.Clone(s.Drafts.Drafted), slices.Clone(s.Drafts.Accepted)}
	return s
}
