package store

import "time"

// Progress is one report of a command at work, in the terms of Ollama's API.
type Progress struct {
	Status    string `json:"status"`           // what is being done, for people
	Digest    string `json:"digest,omitempty"` // of the file in work
	File      string `json:"-"`                // its name
	Total     int64  `json:"total,omitempty"`  // bytes of it
	Completed int64  `json:"completed,omitempty"`
}

// reportEvery bounds how often progress is told.
const reportEvery = 100 * time.Millisecond

// throttle says when it is time for a report again.
type throttle struct{ last time.Time }

func (t *throttle) ready() bool {
	now := time.Now()
	if now.Sub(t.last) < reportEvery {
		return false
	}
	t.last = now
	return true
}
