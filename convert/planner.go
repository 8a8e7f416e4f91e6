package convert

import (
	"cmp"
	"fmt"
	"slices"
)

// Planner is what the planners of all architectures share: the checkpoint, the tensors
// found so far, what the user should know, and the first contradiction.
type Planner struct {
	Src   *Source
	Match *Matcher
	Notes []string

	err error // the first
}

// NewPlanner begins the plan of a checkpoint.
func NewPlanner(src *Source) Planner { return Planner{Src: src, Match: NewMatcher(src)} }

// Notef adds a note for the user.
func (p *Planner) Notef(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// Failf makes a contradiction between config.json and the tensors the error, a
// [FormatError], unless there is one already.
func (p *Planner) Failf(format string, args ...any) {
	if p.err == nil {
		p.err = &FormatError{p.Src.Config.File(), -1, fmt.Sprintf(format, args...)}
	}
}

// Err returns the first contradiction, or what is wrong with the tensors.
func (p *Planner) Err() error { return cmp.Or(p.err, p.Match.Err()) }

// Reversed turns a row-major shape into ggml's order, ne0 first.
func Reversed(shape []int64) []int64 {
	dims := slices.Clone(shape)
	slices.Reverse(dims)
	return dims
}
