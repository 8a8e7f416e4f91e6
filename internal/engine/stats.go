package engine

import (
	"sync"
	"time"
)

// Stats counts what the engine has done since Open, and what it is at.
type Stats struct {
	Requests uint64 // ended, in whatever way
	Rejected uint64 // of them, with ErrBusy
	Failed   uint64 // of them, with another error than the caller's context

	PromptTokens    uint64 // rows of prompts, the cached ones included
	CachedTokens    uint64
	GeneratedTokens uint64
	PromptTime      time.Duration // of all requests, one after another
	GenerateTime    time.Duration

	Steps   uint64   // calls of the model
	Batches []uint64 // [Parallel+1]: steps by the number of sequences in them

	Active, Waiting int // requests now
	Memory          Memory
}

// counters are Stats that the owner and the callers write.
type counters struct {
	mu sync.Mutex
	s  Stats
}

func (c *counters) count(res *Result, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Requests++
	if err != nil {
		c.s.Failed++
	}
	c.s.PromptTokens += uint64(res.PromptTokens)
	c.s.CachedTokens += uint64(res.Cached)
	c.s.GeneratedTokens += uint64(res.GeneratedTokens)
	c.s.PromptTime += res.PromptTime
	c.s.GenerateTime += res.GenerateTime
}

// Stats is a snapshot. It does not wait for a step to end.
func (e *Engine) Stats() Stats {
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	return e.stats.s
}
