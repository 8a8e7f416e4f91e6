package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
)

// question is a request for one greedy answer without thinking.
func question(text string) *Request {
	return &Request{
		Conversation: chat.Conversation{Messages: []chat.Message{{Role: chat.User, Content: []chat.Part{{Text: text}}}}},
		Chat:         chat.Options{Effort: "none", AddGenerationPrompt: true},
		Sampling:     Sampling{TopP: 1, RepeatPenalty: 1},
		MaxTokens:    60,

		ParallelCalls: true,
	}
}

func generate(t *testing.T, e *Engine, r *Request) *Result {
	t.Helper()
	res, err := e.Generate(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestChunksAndCacheTypes: the answer does not depend on how the prompt is cut
// nor, with this model's wide margins, on the type of the cache.
func TestChunksAndCacheTypes(t *testing.T) {
	items := readItems(t)
	it := items[slices.IndexFunc(items, func(it item) bool { return it.Task == "recall" })]
	for _, kv := range []binding.DType{binding.F32, binding.F16, binding.BF16, binding.Q8_0} {
		for _, ubatch := range []int{3, 64, 512} {
			if kv != binding.F32 && ubatch != 64 {
				continue
			}
			e, err := Open(context.Background(), Options{Model: tiny(t, "f32"), KV: kv, Threads: 1, Context: 2048, UBatch: ubatch})
			if err != nil {
				t.Fatal(err)
			}
			if res := generate(t, e, it.request(t)); !slices.Equal(res.IDs, it.Reference.IDs) {
				t.Errorf("%s, %d rows a step: answered %q, want %q", kv, ubatch, e.Spell(res.IDs), e.Spell(it.Reference.IDs))
			}
			e.Close()
		}
	}
}

// TestPrefixReuse: the second turn of a conversation computes only what is new
// and says the same as a fresh engine.
func TestPrefixReuse(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	r := question("My name is Anna.")
	first := generate(t, e, r)
	r.Conversation.Messages = append(r.Conversation.Messages,
		chat.Message{Role: chat.Assistant, Content: []chat.Part{{Text: first.Text}}, Reasoning: first.Reasoning},
		chat.Message{Role: chat.User, Content: []chat.Part{{Text: "What is my name?"}}})
	second := generate(t, e, r)
	if want := len(first.PromptIDs) + len(first.IDs) - 1; second.Cached != want {
		t.Errorf("%d rows were kept, want %d", second.Cached, want)
	}
	if second.Text != "Your name is Anna." {
		t.Errorf("answered %q", second.Text)
	}
	fresh := generate(t, openTiny(t, "f32", binding.F32), r)
	if fresh.Cached != 0 || !slices.Equal(fresh.IDs, second.IDs) {
		t.Errorf("with the state of the first turn %v, without %v", second.IDs, fresh.IDs)
	}
}

// TestSavedStates: requests that begin with an earlier prompt and go on
// differently compute only what differs, and say what a fresh engine says.
func TestSavedStates(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	system := chat.Message{Role: chat.System, Content: []chat.Part{{Text: strings.Repeat("The sky is blue. ", 20)}}}
	ask := func(turns ...string) *Request {
		r := question(turns[0])
		r.Conversation.Messages = []chat.Message{system}
		for i, text := range turns {
			role := chat.User
			if i%2 == 1 {
				role = chat.Assistant
			}
			r.Conversation.Messages = append(r.Conversation.Messages, chat.Message{Role: role, Content: []chat.Part{{Text: text}}})
		}
		return r
	}
	first := generate(t, e, ask("What is the capital of France?"))
	n := len(first.PromptIDs)
	again := generate(t, e, ask("What is the capital of France?"))
	if again.Cached < n-1 || !slices.Equal(again.IDs, first.IDs) {
		t.Errorf("the same prompt: %d of %d rows kept, answered %v, want %v", again.Cached, n, again.IDs, first.IDs)
	}
	for _, c := range []struct {
		name  string
		turns []string
	}{
		{"another answer in the history", []string{"What is the capital of France?", "I do not know, it is a city that I have never been to.", "What is 47 + 38?"}},
		{"back to the first prompt", []string{"What is the capital of France?", "Paris.", "What is 2 + 2?"}},
	} {
		r := ask(c.turns...)
		got := generate(t, e, r)
		if got.Cached < n {
			t.Errorf("%s: %d rows kept, want at least %d", c.name, got.Cached, n)
		}
		fresh := generate(t, openTiny(t, "f32", binding.F32), r)
		if !slices.Equal(got.IDs, fresh.IDs) {
			t.Errorf("%s: answered %v, want %v", c.name, got.IDs, fresh.IDs)
		}
	}
	if last := generate(t, e, ask("What is the capital of France?")); last.Cached != n || !slices.Equal(last.IDs, first.IDs) {
		t.Errorf("the first prompt again: %d of %d rows kept, answered %v, want %v", last.Cached, n, last.IDs, first.IDs)
	}
	m, err := e.Memory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if m.Weights == 0 || m.Cache == 0 || m.Compute == 0 || m.Saved == 0 {
		t.Errorf("memory %+v: want all of it counted", m)
	}
}

// TestOtherPictureIsNotReused: a prompt with the same ids and another picture starts anew.
func TestOtherPictureIsNotReused(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	ask := func(color byte, follow string) *Result {
		r := question("")
		r.Load = func(context.Context, string) (string, []byte, error) { return "drawn", bmpSquare(color), nil }
		r.Conversation.Messages[0].Content = []chat.Part{{Kind: chat.Image, Source: "drawn"}, {Text: "Describe the picture."}}
		if follow != "" {
			r.Conversation.Messages = append(r.Conversation.Messages,
				chat.Message{Role: chat.Assistant, Content: []chat.Part{{Text: follow}}},
				chat.Message{Role: chat.User, Content: []chat.Part{{Text: "How many shapes are there?"}}})
		}
		return generate(t, e, r)
	}
	a := ask(0, "")
	if b := ask(0, a.Text); b.Cached == 0 {
		t.Error("the same picture was computed again")
	}
	ask(0, "")
	if b := ask(200, a.Text); b.Cached != 0 {
		t.Errorf("%d rows of another picture were kept", b.Cached)
	}
}

// bmpSquare is an 80x80 picture of one grey level.
func bmpSquare(level byte) []byte {
	const side = 80
	b := make([]byte, 54+side*side*3)
	copy(b, "BM")
	put := func(off int, v uint32) {
		for i := range 4 {
			b[off+i] = byte(v >> (8 * i))
		}
	}
	put(2, uint32(len(b)))
	put(10, 54)
	put(14, 40)
	put(18, side)
	put(22, side)
	b[26], b[28] = 1, 24
	for i := 54; i < len(b); i++ {
		b[i] = level
	}
	return b
}

// TestInterrupt: a cancelled request ends within a second, and the next one
// answers as if nothing had been.
func TestInterrupt(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	want := generate(t, e, question("What is the capital of France?"))
	for _, during := range []string{"prompt", "answer"} {
		ctx, cancel := context.WithCancel(context.Background())
		r := question(strings.Repeat("What is the capital of France? ", 100))
		var at time.Time
		stop := func() {
			if at.IsZero() {
				at = time.Now()
				cancel()
			}
		}
		if during == "prompt" {
			go func() { time.Sleep(20 * time.Millisecond); cancel() }()
		} else {
			r = question("Count to ten.")
			r.OnToken = func(Token) error { stop(); return nil }
		}
		_, err := e.Generate(ctx, r)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("during the %s: error %v", during, err)
		}
		if !at.IsZero() && time.Since(at) > time.Second {
			t.Errorf("during the %s: took %v to stop", during, time.Since(at))
		}
		if got := generate(t, e, question("What is the capital of France?")); !slices.Equal(got.IDs, want.IDs) {
			t.Errorf("after an interruption during the %s: %v, want %v", during, got.IDs, want.IDs)
		}
	}
}

// TestManyCallers: requests from several goroutines are answered one after another, each with its own answer.
func TestManyCallers(t *testing.T) {
	e := openTiny(t, "f32", binding.F32)
	questions := []string{"What is the capital of France?", "What is 47 + 38?", "What is the capital of Japan?"}
	var want []*Result
	for _, q := range questions {
		want = append(want, generate(t, e, question(q)))
	}
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() {
			res, err := e.Generate(context.Background(), question(questions[i%3]))
			if err != nil {
				t.Error(err)
			} else if !slices.Equal(res.IDs, want[i%3].IDs) {
				t.Errorf("%q: %v, want %v", questions[i%3], res.IDs, want[i%3].IDs)
			}
		})
	}
	wg.Wait()
	e.Close()
	if _, err := e.Generate(context.Background(), question("?")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: error %v", err)
	}
}

func TestContextLimit(t *testing.T) {
	e, err := Open(context.Background(), Options{Model: tiny(t, "f32"), Threads: 1, Context: 40})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = e.Generate(context.Background(), question(strings.Repeat("word ", 100)))
	if !errors.Is(err, ErrContextFull) || !strings.Contains(err.Error(), "the context 40") || !strings.Contains(err.Error(), "8192") {
		t.Errorf("a long prompt: error %v", err)
	}
	raw := &Request{Raw: true, Prompt: strings.Repeat("word ", 1<<20), Sampling: DefaultSampling()}
	for _, r := range []*Request{question(raw.Prompt), raw} { // whose tokens are not counted
		_, err = e.Generate(context.Background(), r)
		if !errors.Is(err, ErrContextFull) || !strings.Contains(err.Error(), "bytes, more than") {
			t.Errorf("a prompt of megabytes: error %v", err)
		}
	}
	r := question("Spell horse backwards.")
	r.MaxTokens = 0
	r.OnToken = nil
	r.Sampling.Temperature = 5 // rarely finds its end
	r.Sampling.Seed = 3
	res := generate(t, e, r)
	if n := len(res.PromptIDs) + len(res.IDs); res.FinishReason != FinishLength || n != 41 {
		t.Errorf("finished by %s with %d tokens in all, want by length with 41: the last one needs no room", res.FinishReason, n)
	}
	r.MaxTokens = 2
	if res := generate(t, e, r); res.FinishReason != FinishLength || len(res.IDs) != 2 {
		t.Errorf("finished by %s after %d tokens, want by length after 2", res.FinishReason, len(res.IDs))
	}
}

func TestOpenErrors(t *testing.T) {
	text := tiny(t, "f32")
	mmproj := filepath.Join(filepath.Dir(text), "mmproj-"+filepath.Base(text))
	cut := filepath.Join(t.TempDir(), "cut.gguf")
	data, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		opt  Options
		want string
	}{
		{"missing file", Options{Model: "nowhere.gguf"}, "nowhere.gguf"},
		{"truncated file", Options{Model: cut}, "cut.gguf"},
		{"projector as model", Options{Model: mmproj}, "--mmproj"},
		{"model as projector", Options{Model: text, MMProj: text}, "is not a projector"},
		{"context above the model's", Options{Model: text, Context: 9000}, "8192"},
		{"cache type", Options{Model: text, KV: binding.I32}, "want f32, f16, bf16 or q8_0"},
		{"threads", Options{Model: text, Threads: -1}, "threads"},
		{"more threads than cores", Options{Model: text, Threads: 500}, "cores"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Open(context.Background(), c.opt)
			if err == nil {
				e.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestMediaErrors(t *testing.T) {
	text := tiny(t, "f32")
	picture := func(load Load) *Request {
		r := question("Describe the picture.")
		r.Load = load
		r.Conversation.Messages[0].Content = append(r.Conversation.Messages[0].Content, chat.Part{Kind: chat.Image, Source: "x.png"})
		return r
	}
	without, err := Open(context.Background(), Options{Model: text, MMProj: "off", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	if _, err := without.Generate(context.Background(), picture(nil)); !errors.Is(err, ErrNoProjector) {
		t.Errorf("without projector: error %v", err)
	}
	e := openTiny(t, "f32", binding.F32)
	for name, load := range map[string]Load{
		"not allowed": nil,
		"x.png":       func(context.Context, string) (string, []byte, error) { return "x.png", []byte("no picture"), nil },
		"unreachable": func(context.Context, string) (string, []byte, error) { return "", nil, errors.New("unreachable") },
	} {
		if _, err := e.Generate(context.Background(), picture(load)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
}

// TestQuantised: eight bits give the same final answers but for two of 97.
func TestQuantised(t *testing.T) {
	e := openTiny(t, "q8_0", binding.F16)
	same, n := 0, 0
	for _, it := range readItems(t) {
		if it.hasAudio() {
			continue
		}
		n++
		res := generate(t, e, it.request(t))
		if cmp.Equal(res.Text, it.Reference.Content) && (len(res.ToolCalls) > 0) == (it.Reference.ToolCall != nil) {
			same++
		} else {
			t.Logf("item %s: %q, want %q", it.ID, res.Text, it.Reference.Content)
		}
	}
	if same < n-2 {
		t.Errorf("%d of %d answers are the reference's, want %d", same, n, n-2)
	}
}

// TestRawPromptEnds: a model that is asked without its template may never say that
// it has come to an end; the context ends it.
func TestRawPromptEnds(t *testing.T) {
	e := openWith(t, Options{Model: convertOnce(t, "f32", "inkling-tiny-random", "original"), Context: 48})
	for _, text := range []string{"word", "What is the colour of the sea?"} {
		res := generate(t, e, &Request{Raw: true, Prompt: text, Sampling: DefaultSampling()})
		if n := len(res.PromptIDs) + len(res.IDs); res.FinishReason != FinishLength || n != 49 {
			t.Errorf("%q: finished by %s with %d tokens in all, want by length with 49", text, res.FinishReason, n)
		}
	}
}
