package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// TestConcurrent: eight different requests, four at a time, with pictures and
// sound among them, are answered as the reference answers each alone.
func TestConcurrent(t *testing.T) {
	for _, c := range []struct{ model, set string }{{"inkling-tiny", "inkling-tiny-eval"}, {"kimi-tiny", "kimi-tiny-eval"}} {
		t.Run(c.model, func(t *testing.T) {
			e := openWith(t, Options{Model: convertOnce(t, "f32", c.model), Parallel: 4})
			tasks, picked := map[string]int{}, []item{}
			for _, it := range readSet(t, c.set) {
				if tasks[it.Task]++; tasks[it.Task] <= 2 && (c.set != "kimi-tiny-eval" || it.Reference.Margin > 1) {
					picked = append(picked, it)
				}
			}
			slices.SortStableFunc(picked, func(a, b item) int { return len(b.Media) - len(a.Media) })
			picked = slices.Concat(picked[:4], picked[len(picked)-4:]) // with media, and without
			var running []<-chan outcome
			for _, it := range picked {
				running = append(running, start(context.Background(), e, it.request(t)))
			}
			for i, it := range picked {
				o := <-running[i]
				if o.err != nil {
					t.Errorf("item %s (%s): %v", it.ID, it.Task, o.err)
				} else if !slices.Equal(o.res.IDs, it.Reference.IDs) {
					t.Errorf("item %s (%s): answered %q, want %q", it.ID, it.Task, e.Spell(o.res.IDs), e.Spell(it.Reference.IDs))
				}
			}
			if s := e.Stats(); s.Requests != 8 || s.Batches[4] == 0 || s.Active != 0 || s.GeneratedTokens == 0 {
				t.Errorf("stats %+v: want 8 requests, and steps of 4 sequences", s)
			}
		})
	}
}

// TestCancelOne: a request that is cancelled in the middle leaves the others as
// they are, and its sequence to the next.
func TestCancelOne(t *testing.T) {
	e := openWith(t, Options{Parallel: 3})
	alone := generate(t, openWith(t, Options{}), question("What is the capital of France?"))
	ctx, cancel := context.WithCancel(context.Background())
	long := endless(e)
	n := 0
	long.OnToken = func(Token) error {
		if n++; n == 5 {
			cancel()
		}
		return nil
	}
	cancelled := start(ctx, e, long)
	var others []<-chan outcome
	for range 4 {
		others = append(others, start(context.Background(), e, question("What is the capital of France?")))
	}
	for _, c := range others {
		if o := <-c; o.err != nil || !slices.Equal(o.res.IDs, alone.IDs) {
			t.Errorf("beside a cancelled request: %v, %v, want %v", o.res, o.err, alone.IDs)
		}
	}
	if o := <-cancelled; !errors.Is(o.err, context.Canceled) || len(o.res.IDs) < 5 {
		t.Errorf("the cancelled one: %v", o.err)
	}
}

// TestFairness: while a long prompt is computed, an answer goes on by one row
// between two chunks, and two long prompts take turns.
func TestFairness(t *testing.T) {
	e := openWith(t, Options{Parallel: 3, UBatch: 32, Draft: NoDraft})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := watch(t, e)
	g := newGate()
	long := endless(e)
	long.OnToken = g.onToken
	answering := start(ctx, e, long)
	<-g.reached
	close(g.open)
	one := question(strings.Repeat("word ", 300))
	two := question(strings.Repeat("other ", 300))
	one.MaxTokens, two.MaxTokens = 1, 1
	first, next := start(context.Background(), e, one), start(context.Background(), e, two)
	for _, c := range []<-chan outcome{first, next} {
		if o := <-c; o.err != nil {
			t.Error(o.err)
		}
	}
	cancel()
	if o := <-answering; !errors.Is(o.err, context.Canceled) {
		t.Errorf("the answer beside the prompts: %v, %v", o.res, o.err)
	}
	var chunks []int // the sequences of chunks, in order
	decoded := 0     // since the last chunk
	for _, c := range m.seen()[1:] {
		if c.seqs[0] == 0 { // of the answer
			decoded++
			continue
		}
		if len(chunks) > 0 && decoded != 1 && len(chunks) < 15 {
			t.Errorf("%d decode steps before chunk %d, want 1", decoded, len(chunks))
		}
		decoded = 0
		chunks = append(chunks, c.seqs[0])
	}
	turns := 0
	for i := 1; i < len(chunks); i++ {
		if chunks[i] != chunks[i-1] {
			turns++
		}
	}
	if len(chunks) < 20 || turns < len(chunks)/2 {
		t.Errorf("chunks of sequences %v: want them to alternate", chunks)
	}
}

// TestQueue: requests wait first come first served, and only so many.
func TestQueue(t *testing.T) {
	e := openWith(t, Options{Parallel: 1, Queue: 2})
	g := newGate()
	r := question("What is the capital of France?")
	r.OnToken = g.onToken
	running := start(context.Background(), e, r)
	<-g.reached
	ctx, cancel := context.WithCancel(context.Background())
	gone := start(ctx, e, question("What is 47 + 38?"))
	waiting := start(context.Background(), e, question("What is the capital of Japan?"))
	for e.mail.count() < 3 {
		runtime.Gosched()
	}
	if _, err := e.Generate(context.Background(), question("?")); !errors.Is(err, ErrBusy) {
		t.Errorf("with a full queue: error %v, want ErrBusy", err)
	}
	cancel()
	if o := <-gone; !errors.Is(o.err, context.Canceled) {
		t.Errorf("cancelled while it waited: %v", o.err)
	}
	close(g.open)
	for _, c := range []<-chan outcome{running, waiting} {
		if o := <-c; o.err != nil {
			t.Error(o.err)
		}
	}
	if s := e.Stats(); s.Rejected != 1 || s.Requests != 4 {
		t.Errorf("stats %+v: want one of four rejected", s)
	}
}

// count is the number of requests that are in.
func (m *mailbox) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

// TestSlowConsumer: a caller that does not take its tokens holds up nobody else,
// and gets the same answer when it does.
func TestSlowConsumer(t *testing.T) {
	e := openWith(t, Options{Parallel: 2, Context: 400})
	want := generate(t, openWith(t, Options{Context: 400}), endless(e))
	g := newGate()
	slow := endless(e)
	slow.OnToken = g.onToken
	stuck := start(context.Background(), e, slow)
	<-g.reached
	for range 3 {
		generate(t, e, question("What is the capital of France?"))
	}
	for !e.stuck() { // it has filled what there is room for
		runtime.Gosched()
	}
	close(g.open)
	o := <-stuck
	if o.err != nil || !slices.Equal(o.res.IDs, want.IDs) || len(o.res.IDs) < 2*eventRoom {
		t.Errorf("the slow one: %v, %d tokens, want the %d of a quick one", o.err, len(o.res.IDs), len(want.IDs))
	}
}

// stuck reports whether a task waits for its caller.
func (e *Engine) stuck() (stuck bool) {
	_ = e.do(context.Background(), func() error {
		for _, s := range e.sched.slots {
			stuck = stuck || s.t != nil && s.t.paused.Load()
		}
		return nil
	})
	return stuck
}

// TestPoisoned: a sequence whose logits are not finite ends with an error and is
// cleared; the ones beside it are as ever.
func TestPoisoned(t *testing.T) {
	e := openWith(t, Options{Parallel: 2})
	want := generate(t, openWith(t, Options{}), question("What is the capital of France?"))
	m := watch(t, e)
	victim, both := 0, false
	m.after = func(bs []models.Batch, out models.Outputs) error {
		for !both && e.mail.count() < 2 { // until the second one is in, the first stays at its first step
			runtime.Gosched()
		}
		both = true
		if len(bs) == 2 && victim < 3 {
			if victim++; victim == 3 {
				out.Logits[17] = nan // of the first sequence of the step
			}
		}
		return nil
	}
	var running []<-chan outcome
	for range 2 {
		running = append(running, start(context.Background(), e, question("What is the capital of France?")))
	}
	poisoned := 0
	for _, c := range running {
		switch o := <-c; {
		case errors.Is(o.err, ErrNotFinite):
			poisoned++
		case o.err != nil || !slices.Equal(o.res.IDs, want.IDs):
			t.Errorf("beside the poisoned one: %v, %v", o.res, o.err)
		}
	}
	if poisoned != 1 {
		t.Fatalf("%d requests ended with ErrNotFinite, want 1", poisoned)
	}
	if err := e.do(context.Background(), func() error {
		if n := e.cache.Pos(0); n != 0 {
			return fmt.Errorf("the poisoned sequence still has %d rows", n)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if res := generate(t, e, question("What is the capital of France?")); !slices.Equal(res.IDs, want.IDs) {
		t.Errorf("afterwards: %v, want %v", res.IDs, want.IDs)
	}
}

// TestFailedStep: a step that fails ends the requests in it, and no other.
func TestFailedStep(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
	}{{"broken", errSpoiled}, {"out of memory", fmt.Errorf("device: %w", binding.ErrOutOfMemory)}} {
		e := openWith(t, Options{Parallel: 2})
		want := generate(t, e, question("What is the capital of France?"))
		m := watch(t, e)
		n := 0
		m.after = func([]models.Batch, models.Outputs) error {
			if n++; n == 4 {
				return c.err
			}
			return nil
		}
		res, err := e.Generate(context.Background(), question("What is the capital of Japan?"))
		if !errors.Is(err, c.err) || len(res.IDs) == 0 || errors.Is(c.err, ErrOutOfMemory) != errors.Is(err, ErrOutOfMemory) {
			t.Errorf("%s: error %v with %v", c.name, err, res)
		}
		if got := generate(t, e, question("What is the capital of France?")); !slices.Equal(got.IDs, want.IDs) {
			t.Errorf("%s: afterwards %v, want %v", c.name, got.IDs, want.IDs)
		}
	}
}

// TestCloseEndsRequests: Close ends what runs and what waits, and leaves no
// goroutine.
func TestCloseEndsRequests(t *testing.T) {
	before := runtime.NumGoroutine()
	e := openWith(t, Options{Parallel: 1})
	g := newGate()
	r := endless(e)
	r.OnToken = g.onToken
	running := start(context.Background(), e, r)
	<-g.reached
	waiting := start(context.Background(), e, question("?"))
	for e.mail.count() < 2 {
		runtime.Gosched()
	}
	close(g.open)
	e.Close()
	for _, c := range []<-chan outcome{running, waiting} {
		if o := <-c; !errors.Is(o.err, ErrClosed) {
			t.Errorf("error %v, want ErrClosed", o.err)
		}
	}
	for range 100 { // goroutines that have done their work may not have ended yet
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// TestCallbackErrors: a callback's error ends the request, and what was
// delivered until then comes with it.
func TestCallbackErrors(t *testing.T) {
	e := openWith(t, Options{})
	r := question("What is the capital of France?")
	n := 0
	r.OnToken = func(Token) error {
		if n++; n == 3 {
			return errSpoiled
		}
		return nil
	}
	res, err := e.Generate(context.Background(), r)
	if !errors.Is(err, errSpoiled) || len(res.IDs) != 3 {
		t.Errorf("error %v after %d tokens, want %v after 3", err, len(res.IDs), errSpoiled)
	}
}

// BenchmarkParallel decodes with 1, 4 and 16 sequences at once.
func BenchmarkParallel(b *testing.B) {
	for _, n := range []int{1, 4, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := openWith(b, Options{Parallel: n})
			r := endless(e)
			r.MaxTokens = 64
			tokens := 0
			for b.Loop() {
				var running []<-chan outcome
				for range n {
					running = append(running, start(context.Background(), e, r))
				}
				for _, c := range running {
					o := <-c
					if o.err != nil {
						b.Fatal(o.err)
					}
					tokens += len(o.res.IDs)
				}
			}
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// TestFaultStepOutOfMemory: a step for which a device has no room ends the answers
// that were in it, with an error that is known, and nothing else.
func TestFaultStepOutOfMemory(t *testing.T) {
	e := openWith(t, Options{Parallel: 2})
	want := generate(t, e, question("What is the capital of France?"))
	m := watch(t, e)
	for _, at := range []int{1, 2, 5} { // the prompt's step, and those of tokens
		n := 0
		m.after = func([]models.Batch, models.Outputs) error {
			if n++; n == at {
				return fmt.Errorf("device CPU: %w while computing", ErrOutOfMemory)
			}
			return nil
		}
		_, err := e.Generate(t.Context(), question("What is the capital of France?"))
		if !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("step %d: error %v", at, err)
		}
		if got := generate(t, e, question("What is the capital of France?")); !slices.Equal(got.IDs, want.IDs) {
			t.Errorf("after a failure of step %d: %q, want %q", at, got.Text, want.Text)
		}
	}
}
