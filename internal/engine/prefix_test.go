package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/internal/chat"
)

// background is a system message of some hundred tokens.
func background(r *Request) *Request {
	r.Conversation.Messages = append([]chat.Message{
		{Role: chat.System, Content: []chat.Part{{Text: strings.Repeat("The sky is blue. ", 100)}}},
	}, r.Conversation.Messages...)
	return r
}

// TestSecondTurn: of a conversation of 600 tokens the second turn computes again
// fewer than 64, whoever else was answered in between.
func TestSecondTurn(t *testing.T) {
	for _, model := range []string{"inkling-tiny", "kimi-tiny"} {
		for _, parallel := range []int{1, 2} {
			e := openWith(t, Options{Model: convertOnce(t, "f32", model), Parallel: parallel})
			r := background(question("What is the capital of France?"))
			first := generate(t, e, r)
			for _, text := range []string{"What is 47 + 38?", "What is the capital of Japan?", strings.Repeat("word ", 100)} {
				generate(t, e, question(text))
			}
			next := generate(t, e, second(r, first, "What is 2 + 2?"))
			if old := first.PromptTokens - next.Cached; old >= 64 || first.PromptTokens < 500 {
				t.Errorf("%s, %d sequences: %d of %d old rows were computed again", model, parallel, old, first.PromptTokens)
			}
		}
	}
}

// spoken collects the log-probabilities of an answer, which tell states apart bit by bit.
func spoken(t *testing.T, e *Engine, r *Request) (probs []float32, res *Result) {
	t.Helper()
	q := *r
	q.Logprobs, q.TopLogprobs = true, 20
	q.OnToken = func(tok Token) error {
		for _, top := range tok.Top {
			probs = append(probs, top.Logprob)
		}
		return nil
	}
	return probs, generate(t, e, &q)
}

// TestParkedIsEqual: a conversation that was moved to host memory for others and
// came back goes on bit by bit as one that was never disturbed.
func TestParkedIsEqual(t *testing.T) {
	for _, model := range []string{"inkling-tiny", "kimi-tiny"} {
		o := Options{Model: convertOnce(t, "f32", model)}
		r := background(question("What is the capital of France?"))
		calm, moved, without := openWith(t, o), openWith(t, o), openWith(t, Options{Model: o.Model, CacheRAM: -1})
		first := generate(t, calm, r)
		want, wanted := spoken(t, calm, second(r, first, "What is 2 + 2?"))

		generate(t, moved, r)
		for range 2 {
			generate(t, moved, question(strings.Repeat("word ", 100)))
			got, res := spoken(t, moved, second(r, first, "What is 2 + 2?"))
			if !slices.Equal(got, want) || res.Cached < wanted.Cached {
				t.Errorf("%s: after other requests the logits differ, or %d rows were kept, want %d", model, res.Cached, wanted.Cached)
			}
			generate(t, moved, r) // back to the end of the first prompt
		}

		generate(t, without, r)
		generate(t, without, question(strings.Repeat("word ", 100)))
		if _, res := spoken(t, without, second(r, first, "What is 2 + 2?")); res.Cached >= leastSaved || !slices.Equal(res.IDs, wanted.IDs) {
			t.Errorf("%s, no room for saved states: %d rows kept, answered %v, want %v", model, res.Cached, res.IDs, wanted.IDs)
		}
		if s := without.Stats(); s.Memory.Saved != 0 {
			t.Errorf("%s: %d bytes saved, none are allowed", model, s.Memory.Saved)
		}
	}
}

// TestSharedBeginning: a prompt that begins as one that is being answered takes
// the rows from there, as soon as there is a point to take them from.
func TestSharedBeginning(t *testing.T) {
	for _, model := range []string{"inkling-tiny", "kimi-tiny"} {
		e := openWith(t, Options{Model: convertOnce(t, "f32", model), Parallel: 3})
		ctx, cancel := context.WithCancel(context.Background())
		g := newGate()
		r := background(endless(e))
		r.OnToken = g.onToken
		running := start(ctx, e, r)
		<-g.reached
		var cached []int
		for _, text := range []string{"What is the capital of France?", "What is the capital of Japan?", "What is 47 + 38?"} {
			q := background(question(text))
			got := generate(t, e, q)
			fresh := generate(t, openWith(t, Options{Model: convertOnce(t, "f32", model)}), q)
			if !slices.Equal(got.IDs, fresh.IDs) {
				t.Errorf("%s, %q: %v, want %v", model, text, got.IDs, fresh.IDs)
			}
			cached = append(cached, got.Cached)
		}
		if cached[2] < 400 { // Inkling's rings go back so far only, but for a point that the second has set
			t.Errorf("%s: kept %v rows, want the system message for the third", model, cached)
		}
		cancel()
		close(g.open)
		<-running
	}
}

// TestCacheRAM: saved states stay within their room, the latest ones in it.
func TestCacheRAM(t *testing.T) {
	probe := openWith(t, Options{})
	generate(t, probe, background(question("?")))
	one := probe.Stats().Memory.Saved // a point at the end of a prompt
	if one == 0 {
		t.Fatal("nothing is saved")
	}
	e := openWith(t, Options{CacheRAM: 3 * one})
	for i := range 6 {
		generate(t, e, background(question(strings.Repeat("word ", 10*i+1))))
		if s := e.Stats().Memory.Saved; s == 0 || s > 3*one {
			t.Errorf("request %d: %d bytes saved, want some, up to %d", i, s, 3*one)
		}
	}

	// What one takes over from another counts too.
	e = openWith(t, Options{Parallel: 5, CacheRAM: 3 * one})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range 5 {
		g := newGate()
		r := background(endless(e))
		r.OnToken = g.onToken
		start(ctx, e, r)
		<-g.reached
		close(g.open)
		if s := e.Stats().Memory.Saved; s > 3*one {
			t.Errorf("%d alike at work: %d bytes saved, want up to %d", i+1, s, 3*one)
		}
	}
}

// TestUsable: which rows of a state serve a prompt.
func TestUsable(t *testing.T) {
	ids := func(n int, last ...int32) []int32 { return append(make([]int32, n), last...) }
	for _, c := range []struct {
		name   string
		fed, p []int32
		reach  int
		n      int
	}{
		{"goes on", ids(10), ids(10, 1), 0, 10},
		{"the same", ids(10), ids(10), 0, 9},
		{"the same, out of reach", ids(10), ids(10), 10, 0},
		{"shorter", ids(10), ids(5), 0, 4},
		{"parts", ids(10, 1, 1), ids(10, 2, 2), 8, 10},
		{"parts out of reach", ids(10, 1, 1), ids(10, 2, 2), 11, 0},
		{"other", ids(0, 1), ids(0, 2), 0, 0},
		{"empty", nil, ids(3), 0, 0},
	} {
		s := content{fed: rows{ids: c.fed}}
		if n, at := s.usable(rows{ids: c.p}, c.reach); n != c.n || at != -1 {
			t.Errorf("%s: %d rows by point %d, want %d", c.name, n, at, c.n)
		}
	}
}
