package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/inkling-go/inkling/internal/gguf"
)

// Memory of a conversion. A chunk is large enough to make handing it over cheap and
// small enough that a cancelled conversion stops at once. A worker has four buffers of
// a chunk (the bytes read, numbers, those of one output, result); all of them together
// have a limit.
const (
	maxChunkBytes = 4 << 20
	maxWorkBytes  = 256 << 20
	workBuffers   = 4
)

// chunkBytes returns the size of a chunk for a number of workers.
func chunkBytes(workers int) int64 {
	return int64(min(maxChunkBytes, maxWorkBytes/(workBuffers*workers)))
}

// writing is the state of writing the outputs.
type writing struct {
	src     *Source
	outs    []output
	o       Options
	targets []*target // of all outputs
	units   []*unit
	journal *journal // nil if there is none

	anyBad atomic.Bool // there are weights that are NaN or infinite

	mu       sync.Mutex // for what follows
	progress Progress   // so far
	rounded  int64      // rows whose codes could not be kept
	kept     int64      // bytes that were there from an interrupted run
}

// newWriting settles what is converted to what, in which order.
func newWriting(src *Source, outs []output, o Options) (*writing, error) {
	w := &writing{src: src, outs: outs, o: o}
	for i := range outs {
		w.targets = append(w.targets, outs[i].targets...)
	}
	var err error
	if w.units, err = units(src, w.targets, chunkBytes(o.Workers)); err != nil {
		return nil, err
	}
	for _, t := range w.targets {
		w.progress.Total += t.rows * t.rowBytes
	}
	return w, nil
}

// largestChunk returns the bytes of the largest chunk as numbers.
func (w *writing) largestChunk() int64 {
	var most int64
	for _, u := range w.units {
		for a := int64(0); a < u.rows; {
			b := u.end(a)
			most = max(most, (b-a)*u.cols*4)
			a = b
		}
	}
	return most
}

// all writes the outputs and gives them their names.
func (w *writing) all(ctx context.Context) (err error) {
	var writers []*gguf.Writer
	defer func() {
		err = w.outOfSpace(err)
		// What a later run can go on with: after a cancellation, or with room on the disk.
		var space *SpaceError
		keep := w.o.Keep && (ctx.Err() != nil || errors.As(err, &space))
		for _, gw := range writers { // nothing to do after a commit
			if keep {
				err = errors.Join(err, gw.Close())
			} else {
				err = errors.Join(err, gw.Abort())
			}
		}
		if w.journal != nil {
			err = errors.Join(err, w.journal.end(!keep))
		}
	}()
	if w.o.Keep {
		if err := w.openJournal(); err != nil {
			return err
		}
	}
	for _, out := range w.outs {
		opened, err := out.open(w.journal != nil && w.journal.resumed)
		writers = append(writers, opened...)
		if err != nil {
			return err
		}
	}
	todo := w.units
	if w.journal != nil && w.journal.resumed {
		if todo, err = w.resume(ctx); err != nil {
			return err
		}
	}
	for _, t := range w.targets {
		if t.Literal != nil {
			if err := t.writeLiteral(); err != nil {
				return err
			}
			w.advance(t, "", 0, t.rows*t.rowBytes)
		}
	}
	if err := w.each(ctx, todo, w.convert); err != nil {
		return err
	}
	if bad := w.nonFinite(); bad != nil && !w.o.AllowNaN {
		return bad
	}
	return commitAll(ctx, writers)
}

// writeLiteral writes a tensor whose values the plan has.
func (t *target) writeLiteral() error {
	p := make([]byte, t.rows*t.rowBytes)
	if err := gguf.EncodeRows(t.to, p, t.Literal); err != nil {
		return fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	return t.write(p, 0)
}

// each hands the chunks of units, in order, to do on all workers. do is called with
// the worker's chunk, which is not yet set to the rows.
func (w *writing) each(ctx context.Context, units []*unit, do func(c *chunk, u *unit, a, b int64) error) error {
	type job struct {
		u    *unit
		a, b int64
	}
	g, ctx := errgroup.WithContext(ctx)
	jobs := make(chan job)
	g.Go(func() error {
		defer close(jobs)
		for _, u := range units {
			u.left.Store(u.chunks())
			for a := int64(0); a < u.rows; {
				b := u.end(a)
				select {
				case jobs <- job{u, a, b}:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				a = b
			}
		}
		return nil
	})
	for range w.o.Workers {
		g.Go(func() error {
			c := new(chunk)
			for j := range jobs {
				if err := context.Cause(ctx); err != nil {
					return err
				}
				if err := do(c, j.u, j.a, j.b); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// convert converts one chunk. Once weights are found that the run will fail for, the
// rest is read only to count them.
func (w *writing) convert(c *chunk, u *unit, a, b int64) error {
	if err := c.set(u, a, b); err != nil {
		return fmt.Errorf("%s: %w", u.from.Name, err)
	}
	w.advance(u.uses[0].target, u.from.Shard, 0, 0)
	if w.count(c) {
		if x := c.block(); x != nil {
			return fmt.Errorf("%w, which %v has no place for", &NonFiniteError{w.src.Dir, c.nonFinite, 1, u.from.Name}, x.target.to)
		}
		if err := c.write(); err != nil {
			return err
		}
		if c.beyond > 0 {
			return &RangeError{w.src.Dir, u.from.Name, c.beyond, c.to.String()}
		}
	}
	w.mu.Lock()
	w.rounded += c.rounded
	w.mu.Unlock()
	w.release(u, a, b)
	u.digest.Add(c.digest)
	w.advance(u.uses[0].target, u.from.Shard, u.inBytes()*(b-a)/u.rows, u.outBytes(a, b))
	if u.left.Add(-1) > 0 {
		return nil
	}
	w.release(u, 0, u.rows) // pages that came back with those around them
	for _, x := range u.uses {
		x.drawn = nil // its rows can be forgotten
	}
	if w.journal != nil {
		return w.journal.add(u)
	}
	return nil
}

// block returns a use of a chunk's weights that are no numbers in a type of blocks,
// which have a scale and no place for them; nil if there is none.
func (c *chunk) block() *use {
	for _, x := range c.unit.uses {
		if elems, _ := x.target.to.Block(); elems > 1 && c.nonFinite > 0 {
			return x
		}
	}
	return nil
}

// count adds the bad weights of a chunk to those of its unit, and reports whether
// what becomes of the chunk still matters.
func (w *writing) count(c *chunk) bool {
	if c.nonFinite > 0 {
		c.unit.bad.Add(c.nonFinite)
		w.anyBad.Store(true)
	}
	return !w.anyBad.Load() || w.o.AllowNaN
}

// nonFinite gathers the bad weights of all units, in the order of the units, which
// does not depend on the workers; nil if there are none.
func (w *writing) nonFinite() *NonFiniteError {
	all := NonFiniteError{Dir: w.src.Dir}
	for _, u := range w.units {
		n := u.bad.Load()
		if n == 0 {
			continue
		}
		if all.Count == 0 {
			all.First = u.from.Name
		}
		all.Count += n
		all.Tensors++
	}
	if all.Count == 0 {
		return nil
	}
	return &all
}

// advance tells how far the run is.
func (w *writing) advance(t *target, shard string, in, out int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.progress
	if p.Shard != shard && shard != "" {
		p.Shard, p.ShardDone, p.ShardTotal = shard, 0, w.shardBytes(shard)
	}
	p.File, p.Tensor = t.path, t.Name
	p.Done += out
	p.ShardDone += in
	if w.o.Progress != nil {
		w.o.Progress(*p)
	}
}

// shardBytes returns how much is read of a shard.
func (w *writing) shardBytes(shard string) int64 {
	var n int64
	for _, u := range w.units {
		if u.from.Shard == shard {
			n += u.inBytes()
		}
	}
	return n
}

// release gives back the pages of the codes and scales of rows that are converted, by
// their share. Plain weights are read and have none.
func (w *writing) release(u *unit, a, b int64) {
	if u.weights == nil {
		return
	}
	for _, t := range u.weights.Parts {
		row := t.Size / u.rows
		from, to := a*row, b*row
		if b == u.rows {
			to = t.Size
		}
		// A page that two chunks share is given back with both of them.
		from = max(0, from-int64(os.Getpagesize()))
		t.Offset, t.Size = t.Offset+from, to-from
		w.src.Tensors.Release(t)
	}
}

// commitAll gives the outputs their names. If one cannot be had, those before it
// are removed again: half a model is none.
func commitAll(ctx context.Context, writers []*gguf.Writer) error {
	for i, gw := range writers {
		err := context.Cause(ctx)
		if err == nil {
			err = gw.Commit()
		}
		if err != nil {
			for _, done := range writers[:i] {
				err = errors.Join(err, os.Remove(done.Path()))
			}
			return err
		}
	}
	return nil
}
