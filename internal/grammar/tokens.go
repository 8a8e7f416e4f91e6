package grammar

import (
	"bytes"
	"math"
	"slices"
)

// Tokens is the trie over the byte strings of a vocabulary. It is immutable and
// may be shared between grammars and goroutines.
type Tokens struct {
	n      int
	nodes  []trieNode // in preorder; nodes[0] is the empty string
	ids    []int32    // the tokens in the order of their nodes
	offset []int      // offset[id]..offset[id+1] in data is the piece of id
	data   []byte
	depth  int // of the deepest node
}

// trieNode is a prefix of some token. Its subtree is nodes[i:end], and the tokens
// spelled exactly so are ids[first:nodes[i+1].first].
type trieNode struct {
	end   int32
	first int32
	depth uint16
	b     byte // the last byte
}

// NewTokens builds the trie of n tokens. piece returns the bytes of a token, any
// bytes, also parts of a character; nil or empty is a token that is never
// allowed, such as a control token. The slices are copied. Nor is a token of more
// than 65535 bytes ever allowed.
func NewTokens(n int, piece func(id int32) []byte) *Tokens {
	t := &Tokens{n: n, offset: make([]int, n+1)}
	for id := range n {
		if p := piece(int32(id)); len(p) <= math.MaxUint16 {
			t.data = append(t.data, p...)
		}
		t.offset[id+1] = len(t.data)
		if t.offset[id+1] > t.offset[id] {
			t.ids = append(t.ids, int32(id))
		}
	}
	slices.SortFunc(t.ids, func(a, b int32) int { return bytes.Compare(t.piece(a), t.piece(b)) })

	t.nodes = []trieNode{{}}
	path := []int32{0} // the nodes from the root to the last token
	var last []byte
	for i, id := range t.ids {
		p := t.piece(id)
		shared := 0
		for shared < min(len(p), len(last)) && p[shared] == last[shared] {
			shared++
		}
		for len(path)-1 > shared {
			t.nodes[path[len(path)-1]].end = int32(len(t.nodes))
			path = path[:len(path)-1]
		}
		for _, b := range p[shared:] {
			path = append(path, int32(len(t.nodes)))
			t.nodes = append(t.nodes, trieNode{first: int32(i), depth: uint16(len(path) - 1), b: b})
		}
		t.depth = max(t.depth, len(p))
		last = p
	}
	for _, v := range path {
		t.nodes[v].end = int32(len(t.nodes))
	}
	// A sentinel, so that every node's tokens end where the next node's begin.
	t.nodes = append(t.nodes, trieNode{first: int32(len(t.ids))})
	return t
}

func (t *Tokens) piece(id int32) []byte { return t.data[t.offset[id]:t.offset[id+1]] }

// words is the length of a mask.
func (t *Tokens) words() int { return (t.n + 63) / 64 }

// at returns the tokens that are spelled exactly as node v.
func (t *Tokens) at(v int32) []int32 { return t.ids[t.nodes[v].first:t.nodes[v+1].first] }
