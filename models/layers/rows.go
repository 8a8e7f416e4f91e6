package layers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// Rows is what steps of decoders have in common: how many rows go in and out.
// Rows are ordered by sequence.
type Rows struct {
	N        int // rows of each sequence
	Lo, Seqs int // the sequences Lo to Lo+Seqs-1 take part, or sit there idle
	Media    int // media rows in all
	Outs     int // rows of which something is wanted

	Logits, Hidden bool // what that is
}

// RowsOf finds the rows of batches that have the same number of them each, and
// what out wants of them.
func RowsOf(bs []models.Batch, out models.Outputs) Rows {
	r := Rows{N: len(bs[0].Tokens), Lo: bs[0].Seq, Logits: out.Logits != nil, Hidden: out.Hidden != nil}
	hi := r.Lo
	for _, b := range bs {
		r.Lo, hi = min(r.Lo, b.Seq), max(hi, b.Seq)
		r.Media += len(b.MediaRows)
		r.Outs += len(b.Outputs)
	}
	r.Seqs = hi - r.Lo + 1
	return r
}

// Lane is what the inputs of a step say about one sequence.
type Lane struct {
	*models.Batch     // nil: idle
	Pos           int // of its first row
}

// Inputs are the inputs of a step that do not depend on the architecture.
type Inputs struct {
	Rows
	IDs     *binding.Tensor // [N*Seqs] I32; 0 in idle rows
	OutRows *binding.Tensor // [Outs] I32; nil if there are none

	media     *binding.Tensor // [n_embd, Media] F32
	mediaRows *binding.Tensor // [Media] I64
	ids       []int32
	outs      []int32
	lanes     []Lane
}

// NewInputs declares the inputs of r in g.
func NewInputs(g *binding.Graph, r Rows, embd int) *Inputs {
	n := r.N * r.Seqs
	in := &Inputs{
		Rows: r, IDs: g.Input("ids", binding.I32, int64(n)),
		ids: make([]int32, n), outs: make([]int32, 0, r.Outs), lanes: make([]Lane, r.Seqs),
	}
	if r.Outs > 0 {
		in.OutRows = g.Input("out_rows", binding.I32, int64(r.Outs))
	}
	if r.Media > 0 {
		in.media = g.Input("media", binding.F32, int64(embd), int64(r.Media))
		in.mediaRows = g.Input("media_rows", binding.I64, int64(r.Media))
	}
	return in
}

// PutMedia writes the media rows over x.
//
//	x:   [n_embd, N*Seqs]
//	res: [n_embd, N*Seqs]
func (in *Inputs) PutMedia(g *binding.Graph, x *binding.Tensor) *binding.Tensor {
	if in.media == nil {
		return x
	}
	return g.SetRows(g.Fresh(x), in.media, in.mediaRows)
}

// Outputs marks what is wanted of the output rows as results of g, in the order
// of the fields of models.Outputs. unembed is not called if no logits are.
//
//	hidden: [n_embd, Outs]   after the final norm
func (in *Inputs) Outputs(g *binding.Graph, hidden *binding.Tensor, unembed func(hidden *binding.Tensor) *binding.Tensor) []*binding.Tensor {
	outs := make([]*binding.Tensor, 2)
	if in.Logits {
		outs[0] = g.Output(unembed(hidden))
	}
	if in.Hidden {
		outs[1] = g.Output(hidden)
	}
	return outs
}

// Fill uploads the inputs and returns the lanes, valid until the next call.
func (in *Inputs) Fill(bs []models.Batch, c models.Cache) []Lane {
	clear(in.lanes)
	clear(in.ids)
	in.outs = in.outs[:0]
	for i := range bs {
		b := &bs[i]
		at := b.Seq - in.Lo
		in.lanes[at] = Lane{b, c.Pos(b.Seq)}
		copy(in.ids[at*in.N:], b.Tokens)
		for _, r := range b.Outputs {
			in.outs = append(in.outs, int32(at*in.N)+r)
		}
	}
	in.IDs.SetInt32s(in.ids)
	if in.OutRows != nil {
		in.OutRows.SetInt32s(in.outs)
	}
	if in.media != nil {
		in.fillMedia(bs)
	}
	return in.lanes
}

func (in *Inputs) fillMedia(bs []models.Batch) {
	values := slices.Clip(bs[0].Media) // as they are, if nothing follows
	for _, b := range bs[1:] {
		values = append(values, b.Media...)
	}
	var rows []int64
	for i := range bs {
		for _, r := range bs[i].MediaRows {
			rows = append(rows, int64((bs[i].Seq-in.Lo)*in.N)+int64(r))
		}
	}
	in.media.SetFloats(values)
	in.mediaRows.SetInt64s(rows)
}

// Limits bound the batches of a model.
type Limits struct {
	Tokens int // ids below are tokens
	Embd   int // values of a media row
	Vocab  int // logits of an output row
}

// Forward is Model.Forward: it checks the batches and hands those that can
// share a graph to run together, the others one by one. Batches share one if
// they have the same number of rows, no more than few.
func Forward(c models.Cache, lim Limits, few int, bs []models.Batch, out models.Outputs, run func(bs []models.Batch, out models.Outputs) error) error {
	if len(bs) == 0 {
		return errors.New("a step without rows")
	}
	outs, alike := 0, true
	for i := range bs {
		b := &bs[i]
		if err := check(c, lim, b); err != nil {
			return err
		}
		if slices.ContainsFunc(bs[:i], func(o models.Batch) bool { return o.Seq == b.Seq }) {
			return fmt.Errorf("sequence %d is twice in one step", b.Seq)
		}
		outs += len(b.Outputs)
		alike = alike && len(b.Tokens) == len(bs[0].Tokens) && len(b.Tokens) <= few
	}
	switch {
	case out.Logits == nil && out.Hidden == nil:
		return errors.New("a step without results")
	case out.Logits != nil && len(out.Logits) != outs*lim.Vocab:
		return fmt.Errorf("room for %d logits, want %d", len(out.Logits), outs*lim.Vocab)
	case out.Hidden != nil && len(out.Hidden) != outs*lim.Embd:
		return fmt.Errorf("room for %d values of hidden rows, want %d", len(out.Hidden), outs*lim.Embd)
	case alike:
		return run(bs, out)
	}
	for i := range bs {
		n := len(bs[i].Outputs)
		var part models.Outputs
		part.Logits, out.Logits = cut(out.Logits, n*lim.Vocab)
		part.Hidden, out.Hidden = cut(out.Hidden, n*lim.Embd)
		if err := run(bs[i:i+1], part); err != nil {
			return err
		}
	}
	return nil
}

// cut splits x behind n values; nil stays nil.
func cut(x []float32, n int) (head, tail []float32) {
	if x == nil {
		return nil, nil
	}
	return x[:n:n], x[n:]
}

// check finds what would not fit the cache or the graph.
func check(c models.Cache, lim Limits, b *models.Batch) error {
	if b.Seq < 0 || b.Seq >= c.Seqs() {
		return fmt.Errorf("sequence %d is outside 0 to %d", b.Seq, c.Seqs()-1)
	}
	n, pos := len(b.Tokens), c.Pos(b.Seq)
	switch {
	case n == 0 || len(b.Outputs) == 0:
		return errors.New("a step needs a row and an output")
	case pos+n > c.Size():
		return fmt.Errorf("%d tokens behind %d: %w (%d)", n, pos, models.ErrContextFull, c.Size())
	case len(b.Media) != len(b.MediaRows)*lim.Embd:
		return fmt.Errorf("%d media values for %d rows of %d", len(b.Media), len(b.MediaRows), lim.Embd)
	}
	return errors.Join(InRange(b.Tokens, lim.Tokens, "token"), InRange(b.MediaRows, n, "media row"), InRange(b.Outputs, n, "output row"))
}

// InRange returns an error unless all ids are 0 to n-1; what names them.
func InRange(ids []int32, n int, what string) error {
	for _, id := range ids {
		if id < 0 || int(id) >= n {
			return fmt.Errorf("%s %d is outside 0 to %d", what, id, n-1)
		}
	}
	return nil
}
