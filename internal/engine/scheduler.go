package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/inkling-go/inkling/models"
)

// scheduler runs tasks together on the sequences of one cache. Each step
// computes the next row of every answer in one graph, and one chunk of one
// prompt: a long prompt holds up the answers by a chunk at a time, and the
// prompts take turns. All of it belongs to the owner's goroutine.
type scheduler struct {
	*prefixes
	e        *Engine
	waiting  []*task // first come, first served
	turn     int     // number of the slot whose prompt had the last chunk
	work     *workspace
	spec     *speculation
	batches  []models.Batch
	deciding []*task // of the step that is being computed
	counting []int32 // 0, 1, 2, ...: see everyRow
	logits   []float32
	hidden   []float32
	spare    []float32 // memory for the rows of the next medium, see reuse
}

// newScheduler divides a cache into slots.
func newScheduler(e *Engine, cache models.Cache) *scheduler {
	s := &scheduler{e: e, spec: newSpeculation(e), prefixes: &prefixes{cache: cache, limit: e.opt.CacheRAM}, work: newWorkspace(e.model.Config().Vocab)}
	for i := range cache.Seqs() {
		s.slots = append(s.slots, &slot{cache: cache, seq: i})
	}
	return s
}

// step does what can be done now, and reports false if there is nothing.
func (s *scheduler) step() bool {
	s.sweep()
	s.admit()
	s.e.stats.gauge(s)
	decoded := s.decode()
	return s.prefill() || decoded
}

// sweep ends the tasks whose callers have gone.
func (s *scheduler) sweep() {
	for _, sl := range s.slots {
		if sl.t != nil && sl.t.ctx.Err() != nil {
			s.end(sl.t, context.Cause(sl.t.ctx))
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(t *task) bool {
		if t.ctx.Err() == nil {
			return false
		}
		t.end(context.Cause(t.ctx))
		return true
	})
}

// admit gives idle slots to those who wait.
func (s *scheduler) admit() {
	for len(s.waiting) > 0 && s.idle(nil) != nil {
		t := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		t.admitted = time.Now()
		t.res.Queued = t.admitted.Sub(t.queued)
		if t.mean != nil { // every row is wanted
			t.slot = s.vacate(nil)
			t.slot.t = t
			continue
		}
		var logits []float32
		t.slot, t.res.Cached, logits, t.branch = s.place(rows{t.p.ids, t.keys})
		t.slot.t = t
		t.slot.prompt = t.n
		if logits != nil {
			s.begin(t, logits)
		}
	}
}

// end gives the slot of a task back. What it holds stays for requests to come.
func (s *scheduler) end(t *task, err error) {
	if sl := t.slot; sl != nil {
		sl.prompt = min(sl.prompt, len(sl.fed.ids))
		sl.t, t.slot = nil, nil
	}
	t.end(err)
}

// fail ends a task whose slot is not sound any more.
func (s *scheduler) fail(t *task, err error) {
	t.slot.reset()
	s.end(t, err)
}

func (s *scheduler) endAll(err error) {
	for _, sl := range s.slots {
		if sl.t != nil {
			s.end(sl.t, err)
		}
	}
	for _, t := range s.waiting {
		t.end(err)
	}
	s.waiting = nil
}

// begin goes from the prompt to the answer, with the logits of the last row.
func (s *scheduler) begin(t *task, logits []float32) {
	t.answer = time.Now()
	t.res.PromptTime = t.answer.Sub(t.admitted)
	s.take(t, logits)
}

// take lets a task choose its next token.
func (s *scheduler) take(t *task, logits []float32) {
	done, err := t.take(s.work, logits)
	s.took(t, done, err)
}

// took ends a task if its last token ends it.
func (s *scheduler) took(t *task, done bool, err error) {
	switch {
	case errors.Is(err, ErrNotFinite):
		s.fail(t, err)
	case done:
		s.end(t, err)
	}
}

// ready are the tasks that want another token.
func (s *scheduler) ready() []*task {
	ts := s.deciding[:0]
	for _, sl := range s.slots {
		if t := sl.t; t != nil && t.decoding() && !t.blocked() {
			ts = append(ts, t)
		}
	}
	s.deciding = ts
	return ts
}

// decode computes the new rows of all answers at once, those of guesses too.
func (s *scheduler) decode() bool {
	ts := s.ready()
	if len(ts) == 0 {
		return false
	}
	r := &round{start: time.Now()}
	guesses, n, err := s.spec.guess(s.cache, ts)
	r.n, r.guessed = n, time.Now()
	s.batches = s.batches[:0]
	outs := 0
	for i, t := range ts {
		ids := t.left()
		if r.n > 0 {
			ids = withGuess(ids, guesses[i].Guess, r.n)
		}
		s.batches = append(s.batches, models.Batch{Seq: t.slot.seq, Tokens: ids, Outputs: s.everyRow(len(ids))})
		outs += len(ids)
	}
	logits := room(&s.logits, outs*s.work.vocab())
	s.e.stats.step(len(ts))
	if err == nil {
		err = s.e.model.Forward(s.cache, s.batches, models.Outputs{Logits: logits})
	}
	if err != nil {
		for _, t := range ts {
			s.fail(t, fmt.Errorf("%s: computing a step of %d sequences: %w", s.e.opt.Model, len(ts), err))
		}
		return true
	}
	r.computed = time.Now()
	for i, t := range ts {
		rows := len(s.batches[i].Tokens) * s.work.vocab()
		s.verify(r, t, guesses[i].Guess, logits[:rows])
		logits = logits[rows:]
	}
	s.spec.note(r, len(ts))
	s.e.stats.round(r)
	return true
}

// everyRow is the list of n rows, which nobody changes.
func (s *scheduler) everyRow(n int) []int32 {
	for i := len(s.counting); i < n; i++ {
		s.counting = append(s.counting, int32(i))
	}
	return s.counting[:n:n]
}

// room returns n values of a buffer that grows as needed.
func room(buf *[]float32, n int) []float32 {
	if len(*buf) < n {
		*buf = make([]float32, n)
	}
	return (*buf)[:n]
}

// prefill computes a chunk of the prompt whose turn it is, or a medium in it.
func (s *scheduler) prefill() bool {
	for i := range s.slots {
		at := (s.turn + 1 + i) % len(s.slots)
		if t := s.slots[at].t; t != nil && !t.decoding() && !t.blocked() {
			s.turn = at
			s.chunk(t)
			return true
		}
	}
	return false
}

// maxSpare is how many values of media are kept room for: 64 MB, three minutes of sound for
// a model of 4096 values a row.
const maxSpare = 16 << 20

// reuse keeps the memory of the largest of some media, whose vectors have served, for the
// next one.
func (s *scheduler) reuse(served []mediaRows) {
	for _, m := range served {
		if n := cap(m.values); n > cap(s.spare) && n <= maxSpare {
			s.spare = m.values
		}
		m.values = nil
	}
}

// chunkRows is how many rows of a prompt are computed at once: not the most while other
// sequences wait for their next tokens.
func (s *scheduler) chunkRows() int {
	for i := range s.slots {
		if t := s.slots[i].t; t != nil && t.decoding() {
			return s.e.rowsBusy
		}
	}
	return s.e.rows
}

// chunk does the next piece of a prompt. Media are encoded one in a step.
func (s *scheduler) chunk(t *task) {
	first := len(t.slot.fed.ids)
	end := min(first+s.chunkRows(), t.n)
	if t.branch > first {
		end = min(end, t.branch)
	}
	if m := t.p.nextMedium(first, end); m != nil {
		dst := s.spare
		s.spare = nil
		err := s.e.interruptible(t, func() error { _, err := m.vectors(dst); return err })
		if err != nil {
			s.end(t, t.errorOr(err))
		}
		return
	}
	b := models.Batch{Seq: t.slot.seq, Tokens: t.p.ids[first:end], Outputs: []int32{int32(end - first - 1)}}
	out := models.Outputs{Logits: room(&s.logits, s.work.vocab())}
	if t.mean != nil {
		b.Outputs = s.everyRow(end - first)
		out = models.Outputs{Hidden: room(&s.hidden, (end-first)*s.e.model.Config().Embd)}
	}
	b.Media, b.MediaRows = t.p.mediaOf(first, end, s.e.model.Config().Embd)
	s.e.stats.step(1)
	err := s.e.interruptible(t, func() error {
		if err := s.e.model.Forward(s.cache, []models.Batch{b}, out); err != nil || t.mean != nil {
			return err
		}
		return s.spec.follow(s.cache, t.slot.seq)
	})
	if err != nil {
		s.fail(t, t.errorOr(fmt.Errorf("%s: computing %d rows of the prompt: %w", s.e.opt.Model, end-first, err)))
		return
	}
	t.computed(end)
	if t.r != nil && t.r.OnPrompt != nil {
		t.events <- event{done: end, total: t.n}
	}
	switch {
	case t.mean != nil:
		t.mean.add(out.Hidden)
		if end == t.n {
			s.fail(t, nil) // nobody goes on from here
		}
	case end == t.n:
		s.mark(t.slot, out.Logits)
		s.reuse(t.p.media)
		t.p.media = nil
		s.begin(t, out.Logits)
	case end == t.branch:
		s.mark(t.slot, nil)
	}
}
