package engine

import (
	"sync"

	"github.com/inkling-go/inkling/internal/grammar"
)

// steering is what constraints know of the vocabulary. It is made for the first
// request that has one.
type steering struct {
	once   sync.Once
	pieces [][]byte // of text tokens that may be sampled; nil: none
	text   []uint64 // a bit for each of them
	tokens *grammar.Tokens
}

// steering returns the tables, on any goroutine.
func (e *Engine) steering() *steering {
	s := &e.steer
	s.once.Do(func() {
		n := e.model.Config().Vocab
		s.pieces, s.text = make([][]byte, n), make([]uint64, (n+63)/64)
		banned := map[int32]bool{}
		for _, id := range e.never {
			banned[id] = true
		}
		for _, name := range e.vocab.Specials() { // marks of a protocol need not be of the control type
			if id, ok := e.vocab.ID(name); ok {
				banned[id] = true
			}
		}
		for id := range int32(n) {
			if piece := e.vocab.Piece(id); !banned[id] && !e.stops[id] && len(piece) > 0 {
				s.pieces[id] = piece
				s.text[id/64] |= 1 << (id % 64)
			}
		}
		s.tokens = grammar.NewTokens(n, func(id int32) []byte { return s.pieces[id] })
	})
	return s
}
