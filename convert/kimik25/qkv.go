package kimik25

import (
	"github.com/inkling-go/inkling/convert"
)

// Rows of the tower's query and key projections are pairs that turn together. Of a
// head's pairs, i = 2j turns with the column and i = 2j+1 with the row of a patch.
// Element c of pair i, c = 0 or 1, is at
//
//	2i + c              as published, and in a kimivl file
//	c·hd/2 + i          in the port
//	(i mod 2)·hd/2 + 2·(i div 2) + c   in a kimik25 file: all of the column, then all of the row
//
// where hd is the size of a head. Values are not permuted.

// headRows returns the parts that put the rows of one head, from base on, into the
// order of the file.
func headRows(base, hd int64, port, vl bool) []span {
	half := hd / 2
	switch {
	case vl && port:
		return []span{{hd, convert.RowMap{Slab: 1, Count: 2, First: base, Step: half}}}
	case vl:
		return []span{{hd, convert.Slice(base, hd)}}
	case port:
		return []span{
			{half, convert.RowMap{Slab: 2, Count: 2, First: base, Step: half}},
			{half, convert.RowMap{Slab: 2, Count: 2, First: base + 1, Step: half}},
		}
	}
	return []span{
		{half, convert.RowMap{Slab: 4, Count: 2, First: base, Step: 1}},
		{half, convert.RowMap{Slab: 4, Count: 2, First: base + 2, Step: 1}},
	}
}

// span is a number of rows and where they are.
type span struct {
	n    int64
	rows convert.RowMap
}

// qkv lists the projections of one block's attention: fused in a kimik25 file, one
// by one in a kimivl file.
func (p *planner) qkv(gguf, block string, n towerNames) []convert.Tensor {
	v := p.c.vision
	var out []convert.Tensor
	for _, kind := range []struct {
		suffix string
		cols   int64 // 0 for a vector
	}{{".weight", v.hidden}, {".bias", 0}} {
		var all []convert.Part
		for which, name := range []string{"attn_q", "attn_k", "attn_v"} {
			parts := p.projection(which, kind.suffix, kind.cols, block, n)
			if p.c.vl {
				out = append(out, convert.Tensor{Name: gguf + name + kind.suffix, Dims: matrixOrVector(kind.cols, v.hidden), Parts: parts})
			}
			all = append(all, parts...)
		}
		if !p.c.vl {
			out = append(out, convert.Tensor{Name: gguf + "attn_qkv" + kind.suffix, Dims: matrixOrVector(kind.cols, 3*v.hidden), Parts: all})
		}
	}
	return out
}

// matrixOrVector returns the dims of rows rows of cols, or of a vector if cols is 0.
func matrixOrVector(cols, rows int64) []int64 {
	if cols == 0 {
		return []int64{rows}
	}
	return []int64{cols, rows}
}

// projection looks up the rows of queries, keys or values (0, 1, 2).
func (p *planner) projection(which int, suffix string, cols int64, block string, n towerNames) []convert.Part {
	v := p.c.vision
	d, hd := v.hidden, v.hidden/v.heads
	port := len(n.qkv) == 3
	name, rows, base := block+n.qkv[0]+suffix, 3*d, int64(which)*d
	if port {
		name, rows, base = block+n.qkv[which]+suffix, d, 0
	}
	shape := convert.Reversed(matrixOrVector(cols, rows))
	const values = 2
	if which == values {
		return []convert.Part{p.Match.Part(d, convert.Spelling{Name: name, Shape: shape, Rows: convert.Slice(base, d)})}
	}
	var parts []convert.Part
	for head := range v.heads {
		for _, r := range headRows(base+head*hd, hd, port, p.c.vl) {
			parts = append(parts, p.Match.Part(r.n, convert.Spelling{Name: name, Shape: shape, Rows: r.rows}))
		}
	}
	return parts
}
