package convert

import (
	"fmt"
	"slices"
)

// jobPart is a [Part] at work.
type jobPart struct {
	Part
	src  []byte // the checkpoint tensor
	same bool   // the output has the layout of the checkpoint: rows are copied
	size int64  // bytes of an element in the checkpoint
	in   int64  // bytes of a row as it comes from the checkpoint
	row  int64  // the first row in the output
}

// newJobPart prepares a part of a job whose type and width are settled and checks
// that the checkpoint tensor, whose bytes are src, has all of it.
func newJobPart(p Part, src []byte, j *rowJob) (jobPart, error) {
	stored, plain := storedAs(p.From.DType)
	jp := jobPart{Part: p, src: src, same: plain && stored == j.to, size: int64(p.From.DType.Bits()) / 8}
	jp.in = j.ne0 * jp.size
	if end := jp.end(j.ne0); p.N <= 0 || end > int64(len(src)) {
		return jobPart{}, fmt.Errorf("%d bytes of %s, want %d", len(src), p.From.Name, end)
	}
	return jp, nil
}

// end returns where the last byte that is read of the checkpoint tensor ends.
func (p *jobPart) end(ne0 int64) int64 {
	if p.Transposed {
		return (p.Rows.First + ne0) * p.N * p.size
	}
	last := p.Rows.source(p.N - 1)
	if c := p.Rows.Count; p.N > c && c > 0 { // the last row of a slab may be past that of the one begun after it
		last = max(last, p.Rows.source(p.N/c*c-1))
	}
	return (last + 1) * p.in
}

// rows returns the checkpoint rows of the chunk: a view where they are in one
// piece, otherwise gathered.
func (c *chunk) rows() []byte {
	p, first := c.part, c.row-c.part.row
	if p.Rows == (RowMap{}) && !p.Transposed {
		return p.src[first*p.in : (first+c.n)*p.in]
	}
	c.raw = slices.Grow(c.raw[:0], int(c.n*p.in))[:c.n*p.in]
	if p.Transposed {
		p.columns(c.raw, first, c.n)
		return c.raw
	}
	for i := range c.n {
		r := p.Rows.source(first+i) * p.in
		copy(c.raw[i*p.in:(i+1)*p.in], p.src[r:r+p.in])
	}
	return c.raw
}

// columns puts n columns of the checkpoint into dst, as rows. It reads along the
// checkpoint's rows: they are far apart, the columns are in the cache.
func (p *jobPart) columns(dst []byte, first, n int64) {
	for k := range p.in / p.size {
		row := p.src[((p.Rows.First+k)*p.N+first)*p.size:]
		for i := range n {
			copy(dst[i*p.in+k*p.size:][:p.size], row[i*p.size:])
		}
	}
}

// releaseBytes is how much of a tensor is read before its pages are given back, so
// that a large one does not push everything else out of memory.
const releaseBytes = 64 << 20

// releaser gives back the pages of checkpoint tensors as they have been read.
type releaser struct {
	src      *Source
	job      *rowJob
	part     int   // the first that is not wholly given back
	released int64 // bytes of it that are
}

// upTo gives back what the rows of the output before the given one were made of.
func (r *releaser) upTo(row int64) {
	for ; r.part < len(r.job.parts); r.part++ {
		p := &r.job.parts[r.part]
		if row < p.row+p.N {
			if !p.Transposed {
				r.release(p, min(p.Rows.source(row-p.row)*p.in, int64(len(p.src))), releaseBytes)
			}
			return
		}
		r.release(p, p.end(r.job.ne0), 1)
		r.released = 0
	}
}

// release gives back a checkpoint tensor up to a byte, if that is at least the
// given amount.
func (r *releaser) release(p *jobPart, end, least int64) {
	from := max(r.released, p.begin())
	if end-from < least {
		return
	}
	t := p.From
	t.Offset += from
	t.Size = end - from
	r.src.Tensors.Release(t)
	r.released = end
}

// begin returns where the first byte that is read of the checkpoint tensor is.
func (p *jobPart) begin() int64 {
	if p.Transposed {
		return p.Rows.First * p.N * p.size
	}
	return p.Rows.First * p.in
}
