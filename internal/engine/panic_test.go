package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/internal/chat"
)

// panicking is a parser with a fault.
type panicking struct{ chat.Parser }

func (panicking) Push(int32) []chat.Delta { panic("a fault of the parser") }

// TestPanicEndsOneAnswer: a fault in what is made of an answer ends that answer,
// and the one beside it goes on as if it were alone.
func TestPanicEndsOneAnswer(t *testing.T) {
	e := openWith(t, Options{Parallel: 2})
	want := generate(t, e, question("What is the capital of France?"))
	g := newGate()
	r := endless(e)
	r.OnToken = g.onToken
	faulty := start(context.Background(), e, r)
	<-g.reached
	beside := start(context.Background(), e, question("What is the capital of France?"))
	if err := e.do(context.Background(), func() error {
		for _, sl := range e.sched.slots {
			if sl.t != nil && sl.t.r.MaxTokens == 0 {
				sl.t.parser = panicking{sl.t.parser}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	var fault *PanicError
	if o := <-faulty; !errors.As(o.err, &fault) || len(fault.Stack) == 0 {
		t.Errorf("error %v, want a PanicError", o.err)
	}
	if o := <-beside; o.err != nil || !slices.Equal(o.res.IDs, want.IDs) {
		t.Errorf("the answer beside it: error %v, %v, want %v", o.err, o.res.IDs, want.IDs)
	}
	if got := generate(t, e, question("What is the capital of France?")); !slices.Equal(got.IDs, want.IDs) {
		t.Errorf("afterwards: %v, want %v", got.IDs, want.IDs)
	}
}
