package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// chunk converts ranges of rows of units. It belongs to one worker; its buffers are
// reused, so that memory does not grow with the tensors.
type chunk struct {
	unit *unit
	a, b int64 // rows of the checkpoint tensor

	raw []byte    // rows of it as they are, if they are plain
	f32 []float32 // the same as numbers; empty until somebody asks
	sel []float32 // the rows of one use
	buf []byte    // encoded

	nonFinite int64 // weights that are NaN or infinite in the checkpoint
	beyond    int64 // finite weights that the output type cannot hold
	to        gguf.Type
	rounded   int64  // rows whose codes could not be kept
	digest    uint64 // of what was written
}

// set takes up rows [a, b) of a unit and looks for weights that are no numbers.
func (c *chunk) set(u *unit, a, b int64) error {
	*c = chunk{unit: u, a: a, b: b, raw: c.raw, f32: c.f32[:0], sel: c.sel, buf: c.buf}
	if u.weights == nil {
		n := int((b - a) * u.in)
		c.raw = slices.Grow(c.raw[:0], n)[:n]
		if got, err := u.src.ReadAt(c.raw, a*u.in); got < n {
			if errors.Is(err, io.EOF) { // the shard was whole when it was opened
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%s: %d of %d bytes: %w", u.from.Shard, got, n, err)
		}
		c.nonFinite = countNonFinite(u.from.DType, c.raw)
		return nil
	}
	if u.weights.Period() > 0 {
		return nil // finite, and seldom needed as numbers
	}
	if err := c.decode(); err != nil {
		return err
	}
	c.nonFinite = nonFinite(c.f32)
	return nil
}

// decode makes numbers of the rows unless that is done.
func (c *chunk) decode() error {
	u := c.unit
	if len(c.f32) > 0 {
		return nil
	}
	n := int((c.b - c.a) * u.cols)
	c.f32 = slices.Grow(c.f32[:0], n)[:n]
	if u.weights != nil {
		u.weights.Decode(c.f32, c.a)
		return nil
	}
	err := widen(c.f32, u.from.DType, c.raw)
	if u.from.DType == safetensors.F64 {
		c.beyond += nonFinite(c.f32) - c.nonFinite
		c.to = gguf.F32
	}
	return err
}

// write encodes what each use takes of the rows and writes it.
func (c *chunk) write() error {
	for _, x := range c.unit.uses {
		first, end := x.span(c.a, c.b)
		if first == end {
			continue
		}
		if c.unit.weights.Period() > 0 && !x.Transposed {
			if err := x.repeat(c.unit.weights, first, end); err != nil {
				return err
			}
			continue
		}
		out, err := c.encoded(x, first, end)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", x.target.Name, err)
		}
		off := (x.row + first) * x.target.rowBytes
		if err := x.target.write(out, off); err != nil {
			return err
		}
		c.digest += digest(x, off, out)
	}
	return nil
}

// check reads back what write has written before and adds it to the digest.
func (c *chunk) check() error {
	for _, x := range c.unit.uses {
		first, end := x.span(c.a, c.b)
		if first == end {
			continue
		}
		size := int((end - first) * x.target.rowBytes)
		c.buf = slices.Grow(c.buf[:0], size)[:size]
		off := (x.row + first) * x.target.rowBytes
		if err := x.target.read(c.buf, off); err != nil {
			return err
		}
		c.digest += digest(x, off, c.buf)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// digest returns a number for bytes at a place of the output. Those of a unit are
// added up, in any order.
func digest(x *use, off int64, p []byte) uint64 {
	h := crc32.Update(crc32.Checksum([]byte(x.target.Name), castagnoli), castagnoli, p)
	return (uint64(h)<<32 | uint64(h)) * (uint64(off)*2 + 1)
}

// encoded returns rows [first, end) of a use in the type of the output. The result is
// valid until the next call.
func (c *chunk) encoded(x *use, first, end int64) ([]byte, error) {
	u, o, n := c.unit, x.target, end-first
	size := int(n * o.rowBytes)
	if x.copies(u) && !x.Transposed {
		if u.weights != nil {
			c.buf = slices.Grow(c.buf[:0], size)[:size]
			return c.buf, c.repack(x, first, end)
		}
		if from, ok := c.inOnePiece(x, first, end); ok {
			return c.raw[from*u.in:][:n*u.in], nil
		}
		c.buf = slices.Grow(c.buf[:0], size)[:size]
		for i := range n {
			copy(c.buf[i*u.in:], c.raw[c.sourceRow(x, first+i)*u.in:][:u.in])
		}
		return c.buf, nil
	}
	src, err := c.numbers(x, first, end)
	if err != nil {
		return nil, err
	}
	c.buf = slices.Grow(c.buf[:0], size)[:size]
	return c.buf, c.encode(o, c.buf, src, x.row+first)
}

// numbers returns rows [first, end) of a use as numbers, until the next call.
func (c *chunk) numbers(x *use, first, end int64) ([]float32, error) {
	if err := c.decode(); err != nil {
		return nil, err
	}
	cols, n := c.unit.cols, end-first
	if x.Transposed {
		return c.columns(x), nil
	}
	if from, ok := c.inOnePiece(x, first, end); ok {
		return c.f32[from*cols:][:n*cols], nil
	}
	c.sel = slices.Grow(c.sel[:0], int(n*cols))[:n*cols]
	for i := range n {
		copy(c.sel[i*cols:(i+1)*cols], c.f32[c.sourceRow(x, first+i)*cols:])
	}
	return c.sel, nil
}

// inOnePiece reports whether rows [first, end) of a use are neighbours in the chunk,
// and where they begin.
func (c *chunk) inOnePiece(x *use, first, end int64) (from int64, ok bool) {
	from = c.sourceRow(x, first)
	return from, !x.whole && c.sourceRow(x, end-1)-from == end-1-first
}

// sourceRow returns which row of the chunk a row of a use is.
func (c *chunk) sourceRow(x *use, r int64) int64 { return x.Rows.source(r) - c.a }

// columns returns the N columns of the ne0 checkpoint rows that a use takes, as rows.
func (c *chunk) columns(x *use) []float32 {
	ne0 := x.target.ne0
	c.sel = slices.Grow(c.sel[:0], int(x.N*ne0))[:x.N*ne0]
	for k := range ne0 {
		row := c.f32[(x.lo-c.a+k)*x.N:][:x.N]
		for i, v := range row {
			c.sel[int64(i)*ne0+k] = v
		}
	}
	return c.sel
}

// repack moves codes to the output, and rounds the rows whose scales do not fit.
func (c *chunk) repack(x *use, first, end int64) error {
	u, o := c.unit, x.target
	for r := first; r < end; r++ {
		row := c.sourceRow(x, r)
		out := c.buf[(r-first)*o.rowBytes:][:o.rowBytes]
		if u.weights.Repack(out, c.a+row) {
			continue
		}
		c.rounded++
		if err := c.encode(o, out, c.f32[row*u.cols:][:u.cols], x.row+r); err != nil {
			return err
		}
	}
	return nil
}

// encode writes rows of the output, the first of which is row of it. Blocks have no
// place for weights that are NaN, infinite or too large. The run fails because of
// them, so that what is written then no longer matters.
func (c *chunk) encode(o *target, dst []byte, src []float32, row int64) error {
	err := o.encode(dst, src, row)
	c.to = o.to
	switch o.to {
	case gguf.F32, gguf.F16, gguf.BF16:
		c.beyond += max(0, countNonFiniteOut(o.to, dst)-nonFinite(src))
		return err
	}
	if err != nil || c.nonFinite > 0 {
		over := countBeyond(o, src, row)
		c.beyond += over
		if over == 0 && nonFinite(src) == 0 {
			return err
		}
		clear(dst)
		return nil
	}
	if o.loss != nil {
		return o.loss.add(o, dst, src, row)
	}
	return nil
}

// encode encodes whole rows, the first of which is row of the output.
func (o *target) encode(dst []byte, src []float32, row int64) error {
	if o.importance == nil && o.factors == nil {
		return encodeRows(o.to, dst, src, o.ne0, nil)
	}
	for len(src) > 0 {
		i, left := o.matrix(row)
		n := min(left, int64(len(src))/o.ne0)
		part := src[:n*o.ne0]
		var importance []float32
		if o.importance != nil {
			importance = o.importance[i%len(o.importance)]
		}
		if o.factors != nil {
			part = scaled(part, 1/o.factors[i%len(o.factors)])
		}
		if err := encodeRows(o.to, dst[:n*o.rowBytes], part, o.ne0, importance); err != nil {
			return err
		}
		src, dst, row = src[n*o.ne0:], dst[n*o.rowBytes:], row+n
	}
	return nil
}

// scaled returns a copy of x times f.
func scaled(x []float32, f float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = v * f
	}
	return y
}

// ours are the types that are encoded in Go, everywhere in the same way; ggml encodes
// the others.
func ours(t gguf.Type) bool {
	switch t {
	case gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.NVFP4:
		return true
	}
	return false
}

func encodeRows(to gguf.Type, dst []byte, src []float32, ne0 int64, importance []float32) error {
	if ours(to) {
		return gguf.EncodeRows(to, dst, src)
	}
	return binding.Quantise(binding.DType(to), dst, src, ne0, importance)
}

// decodeRows is the inverse of encodeRows.
func decodeRows(from gguf.Type, dst []float32, src []byte) error {
	if ours(from) {
		return gguf.DecodeRows(from, dst, src)
	}
	return binding.Dequantise(binding.DType(from), dst, src)
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
