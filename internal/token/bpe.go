package token

// pair is two neighbouring tokens; merge is what they become and how early.
type pair struct{ left, right int32 }

type merge struct {
	rank uint32 // lower merges first
	id   int32  // the merged token
}

// bpe is the merge table of a vocabulary. It works on ids only, so a table made from ranks of byte strings
// (tiktoken) serves as well as one made from a list of merges.
type bpe struct {
	bytes  [256]int32 // the token of each single byte
	merges map[pair]merge
	whole  map[string]int32 // pieces taken whole before any merging (ignore_merges); nil when off
}

// appendPiece encodes one piece of pre-tokenized text and appends its tokens to ids.
//
// The neighbours with the lowest rank merge first, the leftmost of equals. Symbols are a doubly linked list over
// arrays and candidates wait in a heap, so n bytes cost O(n log n) whatever they are.
func (m *bpe) appendPiece(ids []int32, piece string, w *mergeWork) []int32 {
	if id, ok := m.whole[piece]; ok {
		return append(ids, id)
	}
	if len(piece) == 1 {
		return append(ids, m.bytes[piece[0]])
	}
	w.reset(piece, &m.bytes)
	for i := range len(piece) - 1 {
		m.offer(w, int32(i))
	}
	for len(w.heap) > 0 {
		c := w.pop()
		right := w.next[c.pos]
		if w.ids[c.pos] != c.left || right < 0 || w.ids[right] != c.right {
			continue // one of the two has merged with another neighbour since
		}
		w.ids[c.pos] = c.id
		w.ids[right] = gone
		after := w.next[right]
		w.next[c.pos] = after
		if after >= 0 {
			w.prev[after] = c.pos
			m.offer(w, c.pos)
		}
		if before := w.prev[c.pos]; before >= 0 {
			m.offer(w, before)
		}
	}
	for i := int32(0); i >= 0; i = w.next[i] {
		ids = append(ids, w.ids[i])
	}
	return ids
}

// offer puts the pair that starts at pos into the heap if the table merges it.
func (m *bpe) offer(w *mergeWork, pos int32) {
	p := pair{w.ids[pos], w.ids[w.next[pos]]}
	if g, ok := m.merges[p]; ok {
		w.push(candidate{rank: g.rank, pos: pos, pair: p, id: g.id})
	}
}

// gone marks a symbol that was merged into the one on its left.
const gone = -1

// candidate is a possible merge of the symbol at pos with the one after it.
type candidate struct {
	rank uint32
	pos  int32
	pair
	id int32
}

func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.pos < d.pos
}

// mergeWork is the scratch memory of appendPiece, reused from piece to piece.
type mergeWork struct {
	ids, prev, next []int32 // one symbol per byte of the piece at first
	heap            []candidate
}

func (w *mergeWork) reset(piece string, bytes *[256]int32) {
	n := len(piece)
	if cap(w.ids) < n {
		w.ids, w.prev, w.next = make([]int32, n), make([]int32, n), make([]int32, n)
	}
	w.ids, w.prev, w.next = w.ids[:n], w.prev[:n], w.next[:n]
	for i := range n {
		w.ids[i] = bytes[piece[i]]
		w.prev[i] = int32(i) - 1
		w.next[i] = int32(i) + 1
	}
	w.next[n-1] = -1
	w.heap = w.heap[:0]
}

func (w *mergeWork) push(c candidate) {
	h := append(w.heap, c)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !c.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = c
	w.heap = h
}

func (w *mergeWork) pop() candidate {
	h := w.heap
	top, c := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(c) {
			break
		}
		h[i] = h[down]
		i = down
	}
	if len(h) > 0 {
		h[i] = c
	}
	w.heap = h
	return top
}
