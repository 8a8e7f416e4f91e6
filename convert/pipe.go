package convert

import (
	"context"
	"io"
	"sync"
)

// pipe converts tensors on several cores. A tensor is cut into chunks of rows;
// workers convert chunks in any order and the caller writes them in theirs. The
// chunks are reused, so the memory in use does not grow with the tensors.
type pipe struct {
	chunkBytes int64 // of each of the buffers of a chunk

	free    chan *chunk // not in use
	jobs    chan *chunk // to be converted
	workers sync.WaitGroup
}

// Memory of a pipe. A chunk is large enough to make handing it over cheap and small
// enough that a cancelled conversion stops at once. Its three buffers (rows, float32,
// result) count against the limit for all chunks.
const (
	maxChunkBytes = 4 << 20
	maxPipeBytes  = 192 << 20
)

// newPipe starts the workers; stop ends them.
func newPipe(workers int) *pipe {
	n := 2 * workers // one in work and one waiting or being written, for each
	p := &pipe{
		chunkBytes: int64(min(maxChunkBytes, maxPipeBytes/(3*n))),
		free:       make(chan *chunk, n),
		jobs:       make(chan *chunk, n),
	}
	for range n {
		p.free <- &chunk{done: make(chan struct{}, 1)}
	}
	for range workers {
		p.workers.Go(func() {
			for c := range p.jobs {
				c.convert()
				c.done <- struct{}{}
			}
		})
	}
	return p
}

// stop ends the workers. No run may be in progress.
func (p *pipe) stop() {
	close(p.jobs)
	p.workers.Wait()
}

// counts are the weights of a tensor that need attention.
type counts struct {
	nonFinite int64  // NaN or infinite in the checkpoint
	beyond    int64  // finite, and too large for the output type
	first     string // the checkpoint tensor with the first of them
}

// add counts those of a chunk.
func (s *counts) add(c *chunk) {
	s.nonFinite += c.nonFinite
	s.beyond += c.beyond
	if s.first == "" && c.nonFinite+c.beyond > 0 {
		s.first = c.part.From.Name
	}
}

// run converts one tensor and writes the result to w. After each write, wrote is
// told its bytes and the rows that are out in all. A cancelled context ends it within the time of a few chunks.
func (p *pipe) run(ctx context.Context, w io.Writer, j *rowJob, wrote func(bytes, rows int64)) (counts, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inOrder := make(chan *chunk, cap(p.free)) // sends never block, nor do those to p.jobs
	go func() {
		defer close(inOrder)
		for part := range j.parts {
			for row, end := j.span(part); row < end; row += j.step {
				select {
				case <-ctx.Done():
					return
				case c := <-p.free:
					c.job, c.part, c.row, c.n = j, &j.parts[part], row, min(j.step, end-row)
					inOrder <- c
					p.jobs <- c
				}
			}
		}
	}()
	var sum counts
	var err error
	for c := range inOrder { // to the end even after an error: the chunks must come home
		<-c.done
		if err == nil {
			err = c.err
		}
		if err == nil && ctx.Err() == nil {
			sum.add(c)
			_, err = w.Write(c.out)
			wrote(int64(len(c.out)), c.row+c.n)
		}
		if err != nil {
			cancel()
		}
		c.job, c.part, c.out = nil, nil, nil
		p.free <- c
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return sum, err
}
