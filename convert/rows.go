package convert

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// rowJob is the conversion of the rows of one tensor.
type rowJob struct {
	parts []jobPart
	to    gguf.Type // of the output
	ne0   int64     // elements of a row
	rows  int64     // of the output
	out   int64     // bytes of an output row
	step  int64     // rows of a chunk
}

// newRowJob prepares the conversion of t to a type. data returns the bytes of a
// checkpoint tensor. Each buffer of a chunk will hold about chunkBytes, and at
// least one row.
func newRowJob(t Tensor, data func(safetensors.Tensor) []byte, to gguf.Type, chunkBytes int64) (*rowJob, error) {
	j := &rowJob{to: to, ne0: t.Dims[0], rows: product(t.Dims[1:])}
	if len(t.Dims) == 1 && to == gguf.F32 {
		j.ne0, j.rows = 1, t.Dims[0] // so that elements can be picked
	}
	var err error
	if j.out, err = to.RowBytes(j.ne0); err != nil {
		return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	widest, rows := max(j.out, 4*j.ne0), int64(0)
	for _, p := range t.Parts {
		jp, err := newJobPart(p, data(p.From), j)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		jp.row = rows
		rows += jp.N
		widest = max(widest, jp.in)
		j.parts = append(j.parts, jp)
	}
	if rows != j.rows {
		return nil, fmt.Errorf("tensor %s: parts of %d rows in all, want %d", t.Name, rows, j.rows)
	}
	j.step = max(1, chunkBytes/widest)
	return j, nil
}

// span returns the rows of the output that a part has: [first, end).
func (j *rowJob) span(part int) (first, end int64) {
	p := &j.parts[part]
	return p.row, p.row + p.N
}

// chunk is a range of rows on its way through a worker. Its buffers are reused.
type chunk struct {
	job      *rowJob
	part     *jobPart
	row, n   int64 // rows [row, row+n) of the output, all of the part
	done     chan struct{}
	raw, buf []byte
	f32      []float32

	out       []byte // the encoded rows: buf, or the checkpoint itself
	nonFinite int64  // weights that are NaN or infinite in the checkpoint
	beyond    int64  // finite weights that are not in the output
	err       error
}

// convert fills in the results.
func (c *chunk) convert() {
	j := c.job
	src := c.rows()
	c.beyond, c.err = 0, nil
	c.nonFinite = countNonFinite(c.part.From.DType, src)
	if c.part.same {
		c.out = src
		return
	}
	n := int(c.n * j.ne0)
	c.f32 = slices.Grow(c.f32[:0], n)[:n]
	c.buf = slices.Grow(c.buf[:0], int(c.n*j.out))[:c.n*j.out]
	c.out = c.buf
	if c.err = widen(c.f32, c.part.From.DType, src); c.err != nil {
		return
	}
	if j.to == gguf.Q8_0 {
		c.encodeQ8()
		return
	}
	if c.err = gguf.EncodeRows(j.to, c.out, c.f32); c.err == nil {
		c.beyond = max(0, countNonFiniteOut(j.to, c.out)-c.nonFinite)
	}
}

// encodeQ8 quantises the chunk. Blocks have no place for weights that are NaN,
// infinite or too large; the run fails because of them, so that what is written
// then no longer matters.
func (c *chunk) encodeQ8() {
	if c.nonFinite == 0 {
		if c.err = gguf.EncodeRows(gguf.Q8_0, c.out, c.f32); c.err == nil {
			return
		}
	}
	if c.beyond = countBeyondQ8(c.f32); c.beyond > 0 {
		c.err = nil
	}
	clear(c.out)
}

// widen converts checkpoint weights to float32. F64 is rounded.
func widen(dst []float32, d safetensors.DType, src []byte) error {
	if t, ok := storedAs(d); ok {
		return gguf.DecodeRows(t, dst, src)
	}
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
	return nil
}

// maxQ8 is the largest magnitude whose Q8_0 scale, a 127th of it, fits F16.
const maxQ8 = 127 * 65504

// countBeyondQ8 counts the finite values that Q8_0 cannot hold.
func countBeyondQ8(x []float32) int64 {
	var n int64
	for _, v := range x {
		if a := math.Abs(float64(v)); a > maxQ8 && a <= math.MaxFloat32 {
			n++
		}
	}
	return n
}
