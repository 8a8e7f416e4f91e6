package convert

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/inkling-go/inkling/convert/quantin"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// target is an output tensor at work.
type target struct {
	Tensor
	path     string    // of the file
	to       gguf.Type // of the tensor
	ne0      int64     // elements of a row
	rows     int64
	rowBytes int64

	importance [][]float32 // of the columns: nil, or one for each matrix
	factors    []float32   // what the weights are divided by before they are encoded: nil, one, or one for each matrix
	loss       *loss       // where errors of rounding are added up, nil if nobody asks

	write, read func(p []byte, off int64) error // bytes of the tensor
	keep        func(n int64)                   // counts bytes that are there as written
}

// newTarget settles the rows of an output tensor.
func newTarget(t Tensor, path string, to gguf.Type) (*target, error) {
	o := &target{Tensor: t, path: path, to: to, ne0: t.Dims[0], rows: product(t.Dims[1:])}
	if len(t.Dims) == 1 && to == gguf.F32 {
		o.ne0, o.rows = 1, t.Dims[0] // so that elements can be picked
	}
	var err error
	if o.rowBytes, err = to.RowBytes(o.ne0); err != nil {
		return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	rows := int64(0)
	for _, p := range t.Parts {
		if p.N <= 0 {
			return nil, fmt.Errorf("tensor %s: a part of %d rows", t.Name, p.N)
		}
		rows += p.N
	}
	if t.Parts != nil && rows != o.rows {
		return nil, fmt.Errorf("tensor %s: parts of %d rows in all, want %d", t.Name, rows, o.rows)
	}
	return o, nil
}

// matrix returns which matrix of a stack a row is in, and how many rows of it there
// are from that row on.
func (o *target) matrix(row int64) (i int, left int64) {
	n := o.rows
	if len(o.Dims) > 1 {
		n = o.Dims[1]
	}
	return int(row / n), n - row%n
}

// use is a part of an output tensor, seen from the checkpoint tensor that it is of.
type use struct {
	Part
	target *target
	row    int64 // the first row in the output

	whole  bool  // the rows come in another order than the checkpoint's: they need all of [lo, hi) at once
	lo, hi int64 // rows of the checkpoint tensor

	drawn func() ([]byte, error) // of drawn weights: rows that repeat, encoded
}

// newUse finds out which rows of the checkpoint tensor a part takes.
func newUse(p Part, o *target, row int64) *use {
	u := &use{Part: p, target: o, row: row, lo: p.Rows.First}
	m := p.Rows
	switch {
	case p.Transposed:
		u.whole, u.hi = true, m.First+o.ne0
	case m == (RowMap{}):
		u.hi = p.N
	default:
		last := m.source(p.N - 1)
		if p.N > m.Count { // the last row of a slab may be past that of the one begun after it
			last = max(last, m.source(p.N/m.Count*m.Count-1))
			u.whole = (m.Count-1)*m.Step >= m.Slab
		}
		u.hi = last + 1
	}
	return u
}

// before returns how many rows of the part come from checkpoint rows before s.
func (u *use) before(s int64) int64 {
	m, t := u.Rows, s-u.lo
	switch {
	case t <= 0:
		return 0
	case s >= u.hi:
		return u.N
	case m == (RowMap{}):
		return t
	case u.N <= m.Count:
		return (t + m.Step - 1) / m.Step
	}
	return t/m.Slab*m.Count + min((t%m.Slab+m.Step-1)/m.Step, m.Count)
}

// span returns the rows of the part, [first, end), that checkpoint rows [a, b) give.
func (u *use) span(a, b int64) (first, end int64) {
	switch {
	case !u.whole:
		return u.before(a), u.before(b)
	case a <= u.lo && u.hi <= b:
		return 0, u.N
	}
	return 0, 0
}

// unit is a checkpoint tensor with all that becomes of it. Each is read once.
type unit struct {
	from    safetensors.Tensor
	weights *quantin.Weights  // nil if the weights are plain
	src     *io.SectionReader // the data, if they are plain
	cols    int64             // elements of a row
	rows    int64
	in      int64 // bytes of a row, of plain weights
	step    int64 // rows of a chunk
	uses    []*use

	left   atomic.Int64  // chunks that are not done
	digest atomic.Uint64 // of the output, see journal
	bad    atomic.Int64  // weights that are NaN or infinite
}

// units groups the parts of all targets by the checkpoint tensor they come from, in
// the order of the checkpoint's files. Each buffer of a chunk will have about
// chunkBytes.
func units(src *Source, targets []*target, chunkBytes int64) ([]*unit, error) {
	return unitsOf(targets, src.Tensors.Reader, chunkBytes)
}

// dataOf returns the data of a checkpoint tensor.
type dataOf func(safetensors.Tensor) *io.SectionReader

// unitsOf is units of checkpoint tensors that data reads.
func unitsOf(targets []*target, data dataOf, chunkBytes int64) ([]*unit, error) {
	byName := make(map[string]*unit)
	var all []*unit
	for _, o := range targets {
		row := int64(0)
		for _, p := range o.Parts {
			u := byName[p.From.Name]
			if u == nil {
				u = &unit{from: p.From, weights: p.Weights}
				byName[p.From.Name] = u
				all = append(all, u)
			}
			if err := u.add(newUse(p, o, row)); err != nil {
				return nil, fmt.Errorf("tensor %s: %w", o.Name, err)
			}
			row += p.N
		}
	}
	for _, u := range all {
		if err := u.settle(data, chunkBytes); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.from.Shard, b.from.Shard), cmp.Compare(a.from.Offset, b.from.Offset))
	})
	return all, nil
}

// add adds a use; all must see the checkpoint tensor as rows of the same length.
func (u *unit) add(x *use) error {
	cols := x.target.ne0
	if x.Transposed {
		cols = x.N
	}
	if len(u.uses) > 0 && cols != u.cols {
		return fmt.Errorf("rows of %d weights of %s, others take rows of %d", cols, u.from.Name, u.cols)
	}
	u.cols = cols
	u.uses = append(u.uses, x)
	return nil
}

// settle finds the data of the checkpoint tensor and checks that it has all rows.
func (u *unit) settle(data dataOf, chunkBytes int64) error {
	size := int64(4)
	if u.weights != nil {
		if u.weights.Format == quantin.Drawn {
			u.weights = u.weights.Rowed(u.cols)
			for _, x := range u.uses {
				x.drawn = sync.OnceValues(func() ([]byte, error) { return x.encodeDrawn(u.weights) })
			}
		}
		if u.weights.Cols() != u.cols {
			return fmt.Errorf("%s: rows of %d weights, want %d", u.from.Name, u.weights.Cols(), u.cols)
		}
		u.rows = u.weights.Rows()
	} else {
		u.src = data(u.from)
		size = int64(u.from.DType.Bits()) / 8
		u.in = u.cols * size
		u.rows = u.src.Size() / u.in
	}
	widest := u.cols * max(4, size)
	for _, x := range u.uses {
		if x.hi > u.rows {
			return fmt.Errorf("tensor %s: %d rows of %s, want %d", x.target.Name, u.rows, u.from.Name, x.hi)
		}
	}
	u.step = max(1, chunkBytes/widest)
	return nil
}

// end returns where the chunk ends that begins at row a: after about u.step rows, and
// not in the middle of rows that are needed at once.
func (u *unit) end(a int64) int64 {
	b := min(a+u.step, u.rows)
	for again := true; again; {
		again = false
		for _, x := range u.uses {
			if x.whole && x.lo < b && b < x.hi {
				b, again = x.hi, true
			}
		}
	}
	return b
}

// chunks returns the ranges of rows that are converted at once.
func (u *unit) chunks() int64 {
	n := int64(0)
	for a := int64(0); a < u.rows; a = u.end(a) {
		n++
	}
	return n
}

// outBytes returns the bytes of output that checkpoint rows [a, b) become.
func (u *unit) outBytes(a, b int64) int64 {
	var n int64
	for _, x := range u.uses {
		first, end := x.span(a, b)
		n += (end - first) * x.target.rowBytes
	}
	return n
}

// inBytes returns the bytes of the checkpoint that the unit reads.
func (u *unit) inBytes() int64 {
	if u.weights != nil {
		return u.weights.Bytes()
	}
	return u.src.Size()
}
