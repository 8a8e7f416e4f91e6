package token

import (
	"fmt"
	"slices"
	"strings"
)

// Vocab is a byte-level BPE vocabulary. It does not change once loaded and may be used from several goroutines.
type Vocab struct {
	tokens []string // as in tokenizer.ggml.tokens: the byte alphabet for Normal, the string itself otherwise
	types  []Type
	pieces [][]byte // what each token stands for
	merges []string // "left right" by rank, as in tokenizer.ggml.merges
	pre    string   // name of the split pattern, "" for a pattern without one

	bpe     bpe
	split   *splitter
	special specials

	eos, bos int32 // -1 when the file names none
}

// N returns the size of the vocabulary, unused padding included.
func (v *Vocab) N() int { return len(v.tokens) }

// Used returns the size without the Unused entries at the end: the usable, unpadded vocabulary.
func (v *Vocab) Used() int {
	n := len(v.types)
	for n > 0 && v.types[n-1] == Unused {
		n--
	}
	return n
}

// Token returns the bytes that id stands for, for control and unused tokens their string. The caller must not
// change them. ok is false outside the vocabulary.
func (v *Vocab) Token(id int32) (piece []byte, ok bool) {
	if id < 0 || int(id) >= len(v.pieces) {
		return nil, false
	}
	return v.pieces[id], true
}

// Piece returns the text bytes of id: nothing for control tokens, unused ones and ids outside the vocabulary.
// One piece may hold part of a character. The caller must not change it.
func (v *Vocab) Piece(id int32) []byte {
	if id < 0 || int(id) >= len(v.pieces) || v.types[id] == Control || v.types[id] == Unused {
		return nil
	}
	return v.pieces[id]
}

// ID returns the id of a control or user-defined token by its string.
func (v *Vocab) ID(s string) (id int32, ok bool) {
	id, ok = v.special.ids[s]
	return id, ok
}

// Type returns the type of id, 0 outside the vocabulary.
func (v *Vocab) Type(id int32) Type {
	if id < 0 || int(id) >= len(v.types) {
		return 0
	}
	return v.types[id]
}

// Control reports whether id is a control token.
func (v *Vocab) Control(id int32) bool { return v.Type(id) == Control }

// EOS returns the end-of-sequence id that the file names. A chat model may have more ids that end its turn.
func (v *Vocab) EOS() (id int32, ok bool) { return v.eos, v.eos >= 0 }

// BOS returns the beginning-of-sequence id that the file names. GGUF files of models without one repeat the
// end-of-sequence id here.
func (v *Vocab) BOS() (id int32, ok bool) { return v.bos, v.bos >= 0 }

// Tokens returns the strings for tokenizer.ggml.tokens, one per id. Normal tokens are spelled in the GPT-2 byte
// alphabet.
func (v *Vocab) Tokens() []string { return slices.Clone(v.tokens) }

// Types returns the numbers for tokenizer.ggml.token_type, one per id.
func (v *Vocab) Types() []int32 {
	types := make([]int32, len(v.types))
	for i, t := range v.types {
		types[i] = int32(t)
	}
	return types
}

// Merges returns the strings "left right" for tokenizer.ggml.merges, lowest rank first.
func (v *Vocab) Merges() []string { return slices.Clone(v.merges) }

// Pre returns the name of the pre-tokenizer for tokenizer.ggml.pre. It is empty if no name stands for what a tokenizer.json says: such
// a vocabulary works but cannot be written to GGUF.
func (v *Vocab) Pre() string { return v.pre }

// Pad returns the vocabulary with Unused tokens "[PAD<id>]" added up to n entries, the width of a padded embedding.
func (v *Vocab) Pad(n int) (*Vocab, error) {
	if n < len(v.tokens) || n > maxTokens {
		return nil, fmt.Errorf("vocabulary of %d tokens cannot be padded to %d", len(v.tokens), n)
	}
	p := *v
	p.tokens, p.types, p.pieces = slices.Clone(v.tokens), slices.Clone(v.types), slices.Clone(v.pieces)
	for id := len(p.tokens); id < n; id++ {
		p.tokens = append(p.tokens, padName(id))
		p.types = append(p.types, Unused)
		p.pieces = append(p.pieces, []byte(padName(id)))
	}
	return &p, nil
}

func padName(id int) string { return fmt.Sprintf("[PAD%d]", id) }

// source is what a file says about a vocabulary.
type source struct {
	name         string // of the file or key, for errors
	tokens       []string
	types        []Type
	merges       []string
	pre          string
	patterns     []string
	ignoreMerges bool
	eos, bos     int32
}

// newVocab checks s and builds the tables.
func newVocab(s source) (*Vocab, error) {
	v := &Vocab{tokens: s.tokens, types: s.types, merges: s.merges, pre: s.pre, eos: s.eos, bos: s.bos}
	ids := make(map[string]int32, len(s.tokens)) // Normal tokens by spelling
	v.pieces = make([][]byte, len(s.tokens))
	added := make(map[string]int32)
	for i, t := range s.tokens {
		id := int32(i)
		v.pieces[i] = []byte(t)
		switch s.types[i] {
		case Normal:
			// A token outside the alphabet cannot come out of merges; it stands for its own characters.
			if raw, ok := alphabet.bytes(t); ok {
				v.pieces[i] = raw
			}
			if first, ok := ids[t]; ok {
				return nil, formatErrorf(s.name, "tokens %d and %d are both %q", first, id, t)
			}
			ids[t] = id
		case Control, UserDefined:
			if t == "" {
				return nil, formatErrorf(s.name, "special token %d is empty", id)
			}
			if first, ok := added[t]; ok {
				return nil, formatErrorf(s.name, "special tokens %d and %d are both %q", first, id, t)
			}
			added[t] = id
		case Unused:
		default:
			return nil, unsupportedf(s.name, "type %d of token %d %q in a byte-level vocabulary", s.types[i], id, t)
		}
	}
	v.special = newSpecials(added)
	for _, id := range []int32{s.eos, s.bos} {
		if int(id) >= len(s.tokens) {
			return nil, formatErrorf(s.name, "special token id %d is not below the vocabulary size %d", id, len(s.tokens))
		}
	}
	if err := v.bpe.build(s, ids); err != nil {
		return nil, err
	}
	split, err := newSplitter(s.patterns)
	if err != nil {
		return nil, unsupportedf(s.name, "pre-tokenizer pattern: %v", err)
	}
	v.split = split
	return v, nil
}

// build fills the merge table from the merges of s. ids maps the spelling of each normal token to its id.
func (m *bpe) build(s source, ids map[string]int32) error {
	for b := range m.bytes {
		id, ok := ids[string(alphabet.char[b])]
		if !ok {
			return formatErrorf(s.name, "no token for the single byte 0x%02X", b)
		}
		m.bytes[b] = id
	}
	m.merges = make(map[pair]merge, len(s.merges))
	for rank, line := range s.merges {
		left, right, ok := strings.Cut(line, " ")
		if !ok || left == "" || right == "" || strings.Contains(right, " ") {
			return formatErrorf(s.name, "merge %d is %q, want two tokens and a space between them", rank, line)
		}
		l, okL := ids[left]
		r, okR := ids[right]
		id, okM := ids[left+right]
		if !okL || !okR || !okM {
			return formatErrorf(s.name, "merge %d %q uses or makes a token that is not in the vocabulary", rank, line)
		}
		m.merges[pair{l, r}] = merge{rank: uint32(rank), id: id}
	}
	if s.ignoreMerges {
		m.whole = make(map[string]int32, len(ids))
		for t, id := range ids {
			if raw, ok := alphabet.bytes(t); ok {
				m.whole[string(raw)] = id
			}
		}
	}
	return nil
}
