package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/models"
)

// call is a step of the model as the scheduler asked for it.
type call struct {
	seqs []int
	rows []int
}

// spy stands between the scheduler and the model: it notes the steps, and can
// spoil them.
type spy struct {
	models.Model
	mu    sync.Mutex
	calls []call
	after func(bs []models.Batch, out models.Outputs) error // on the owner's goroutine
}

func (m *spy) Forward(c models.Cache, bs []models.Batch, out models.Outputs) error {
	var one call
	for _, b := range bs {
		one.seqs = append(one.seqs, b.Seq)
		one.rows = append(one.rows, len(b.Tokens))
	}
	m.mu.Lock()
	m.calls = append(m.calls, one)
	m.mu.Unlock()
	err := m.Model.Forward(c, bs, out)
	if err == nil && m.after != nil {
		err = m.after(bs, out)
	}
	return err
}

// seen returns the steps so far.
func (m *spy) seen() []call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}

// watch puts a spy into an idle engine.
func watch(t testing.TB, e *Engine) *spy {
	t.Helper()
	m := &spy{}
	if err := e.do(context.Background(), func() error { m.Model, e.model = e.model, m; return nil }); err != nil {
		t.Fatal(err)
	}
	return m
}

// openWith opens the trained Inkling checkpoint in F32, on one thread.
func openWith(t testing.TB, o Options) *Engine {
	t.Helper()
	if o.Model == "" {
		o.Model = tiny(t, "f32")
	}
	o.KV, o.Threads, o.MTP = binding.F32, 1, "off" // guesses come and go with the time that they take
	if o.Context == 0 {
		o.Context = 2048
	}
	e, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// outcome is what a request came to.
type outcome struct {
	res *Result
	err error
}

// start begins a request on a goroutine of its own.
func start(ctx context.Context, e *Engine, r *Request) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		res, err := e.Generate(ctx, r)
		c <- outcome{res, err}
	}()
	return c
}

// gate is an OnToken that tells of its first call and then waits to be opened.
type gate struct {
	reached, open chan struct{}
	once          sync.Once
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

func (g *gate) onToken(Token) error {
	g.once.Do(func() { close(g.reached) })
	<-g.open
	return nil
}

// endless is a request that goes on until its context is full or it is stopped.
func endless(e *Engine) *Request {
	r := question("Count to ten.")
	r.MaxTokens = 0
	r.LogitBias = map[int32]float32{}
	for id := range e.stops {
		r.LogitBias[id] = -1e6
	}
	return r
}

// errSpoiled is what a spoiled step gives.
var errSpoiled = errors.New("the device has fallen off the bus")

// second is the next turn of a conversation.
func second(r *Request, res *Result, text string) *Request {
	next := *r
	next.Conversation.Messages = append(slices.Clone(r.Conversation.Messages),
		chat.Message{Role: chat.Assistant, Content: []chat.Part{{Text: res.Text}}, Reasoning: res.Reasoning},
		chat.Message{Role: chat.User, Content: []chat.Part{{Text: text}}})
	return &next
}
