package inkling

import (
	"slices"

	"github.com/inkling-go/inkling/models"
)

// tail is what the depths still need of a sequence, and how far they have come.
type tail struct {
	base   int         // row of the first element
	ids    []int32     // one for each row
	media  [][]float32 // likewise: nil, or the vector of a media row
	depths []behind
}

// behind is how far one depth has come, and what waits for it: of the first depth
// all that the model gave, of others what the depth before gave and is final.
type behind struct {
	base   int       // row of the first element; not above done, or the depth lacks rows
	hidden []float32 // [n_embd] for each row
	origin int       // row of the sequence that is the depth's first
	done   int       // rows below are final
}

func newTail(depths int) tail { return tail{depths: make([]behind, depths)} }

// add appends the rows of a step.
//
//	hidden: [n_embd] for each row: after the model's final norm
func (t *tail) add(b *models.Batch, hidden []float32, embd int) {
	first := &t.depths[0]
	if n := len(first.hidden) / embd; n > 2*maxBehind {
		first.drop(first.base+n-maxBehind, embd)
		for d := 1; d < len(t.depths) && first.base > first.done; d++ {
			t.depths[d].empty(first.base) // the depths before begin anew there
		}
		t.trim(first.base, embd)
	}
	at := len(t.ids)
	t.ids = append(t.ids, b.Tokens...)
	t.media = append(t.media, make([][]float32, len(b.Tokens))...)
	for i, row := range b.MediaRows {
		t.media[at+int(row)] = slices.Clone(b.Media[i*embd : (i+1)*embd])
	}
	first.hidden = append(first.hidden, hidden...)
}

// trim forgets rows below least that no depth has to be computed for any more, if
// they are many.
func (t *tail) trim(least, embd int) {
	first := &t.depths[0]
	if row := min(first.done, least); row-first.base >= keepRows {
		first.drop(row, embd)
	}
	row := first.base
	for d := range t.depths {
		if b := &t.depths[d]; len(b.hidden) > 0 {
			row = min(row, b.base)
		}
	}
	if n := min(row-t.base, len(t.ids)); n > 0 {
		t.base += n
		t.ids, t.media = slices.Delete(t.ids, 0, n), slices.Delete(t.media, 0, n)
	}
}

// batch holds the tokens from row from to row to-1.
func (t *tail) batch(seq, from, to int) models.Batch {
	b := models.Batch{Seq: seq, Tokens: slices.Clone(t.ids[from-t.base : to-t.base])}
	for r, v := range t.media[from-t.base : to-t.base] {
		if v != nil {
			b.MediaRows = append(b.MediaRows, int32(r))
			b.Media = append(b.Media, v...)
		}
	}
	return b
}

// cut forgets the rows from pos on. The first wanted depths stay together, so
// that a window can follow on all of them.
func (t *tail) cut(pos, wanted, embd int) {
	if n := max(0, pos-t.base); n < len(t.ids) {
		t.ids, t.media = t.ids[:n], t.media[:n]
	}
	t.base = min(t.base, pos)
	fed := pos // rows that the depth before has final
	for d := range t.depths {
		b := &t.depths[d]
		b.cutTo(fed, embd)
		fed = max(0, pos-max(d+1, wanted))
		b.done = min(b.done, fed) // the token behind pos may be another one
		if d > 0 && b.base > b.done {
			b.empty(b.done)
		}
	}
}

// clone copies what waits.
func (t *tail) clone() tail {
	c := *t
	c.ids, c.media, c.depths = slices.Clone(t.ids), slices.Clone(t.media), slices.Clone(t.depths)
	for d := range c.depths {
		c.depths[d].hidden = slices.Clone(c.depths[d].hidden)
	}
	return c
}

// bytes is the memory of what waits.
func (t *tail) bytes() int64 {
	n := 4 * int64(len(t.ids))
	for _, v := range t.media {
		n += 4 * int64(len(v))
	}
	for _, b := range t.depths {
		n += 4 * int64(len(b.hidden))
	}
	return n
}

// end is the row behind the last that waits.
func (b *behind) end(embd int) int { return b.base + len(b.hidden)/embd }

// rows are those from row from to row to-1.
func (b *behind) rows(from, to, embd int) []float32 {
	return b.hidden[(from-b.base)*embd : (to-b.base)*embd]
}

// feed appends rows from row first on, of which some may be there already. If some
// lack before them, those before are forgotten.
func (b *behind) feed(first int, rows []float32, embd int) {
	if end := b.end(embd); first > end {
		b.empty(first)
	} else if n := (end - first) * embd; n < len(rows) {
		rows = rows[n:]
	} else {
		return
	}
	b.hidden = append(b.hidden, rows...)
}

// empty forgets all that waits: the next row is row base.
func (b *behind) empty(base int) { b.base, b.hidden = base, b.hidden[:0] }

// drop forgets the rows below row.
func (b *behind) drop(row, embd int) {
	if n := min((row-b.base)*embd, len(b.hidden)); n > 0 {
		b.base += n / embd
		b.hidden = slices.Delete(b.hidden, 0, n)
	}
}

// cutTo forgets the rows from row end on.
func (b *behind) cutTo(end, embd int) {
	if n := max(0, end-b.base) * embd; n < len(b.hidden) {
		b.hidden = b.hidden[:n]
	}
	b.base = min(b.base, end)
}
