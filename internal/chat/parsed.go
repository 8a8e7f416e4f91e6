package chat

import "github.com/inkling-go/inkling/internal/token"

// parsed is what a parser makes of ids: pieces of text and calls, and how the answer
// ended.
type parsed struct {
	text   token.Detokenizer // of the visible text that is being written
	kind   DeltaKind         // of that text
	out    []Delta           // of the current Push
	warned []string

	stopped bool
	endedBy int32 // if stopped
}

// Stop returns the id that ended the turn.
func (s *parsed) Stop() (int32, bool) { return s.endedBy, s.stopped }

// Warnings returns what the model got wrong.
func (s *parsed) Warnings() []string { return s.warned }

// emit writes text bytes of a kind, whole characters only.
func (s *parsed) emit(kind DeltaKind, piece []byte) {
	if kind != s.kind {
		s.flush()
		s.kind = kind
	}
	s.out = append(s.out, textDelta(kind, s.text.Push(piece))...)
}

// flush ends a run of text: a character that is incomplete now stays so.
func (s *parsed) flush() {
	s.out = append(s.out, textDelta(s.kind, s.text.Flush())...)
}
