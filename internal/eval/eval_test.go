package eval

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	_ "github.com/inkling-go/inkling/models/inkling"
)

func TestMain(m *testing.M) { os.Exit(tinymodel.Main(m)) }

func tiny(t *testing.T, outType convert.OutType) string {
	t.Helper()
	return tinymodel.Inkling.Files(t, outType).Model
}

func scorer(t *testing.T, outType convert.OutType, window int) *Scorer {
	t.Helper()
	s, err := OpenScorer(tiny(t, outType), Loading{Threads: 1, Devices: devices.Options{Device: "cpu"}, KV: binding.F32, Window: window})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

const set = "inkling-tiny-eval"

// TestAnswer asks the first questions of the trained checkpoint's set: all are
// answered as expected, as by the reference, and none if something else is expected.
func TestAnswer(t *testing.T) {
	items, err := ReadSet(testutil.Testdata(t, set, "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 119 {
		t.Fatalf("%d questions, want 119", len(items))
	}
	var some []Item // one of each task
	tasks := map[string]bool{}
	for _, it := range items {
		if !tasks[it.Task] {
			tasks[it.Task] = true
			some = append(some, it)
		}
	}
	e, err := engine.Open(t.Context(), engine.Options{Model: tiny(t, "f32"), Threads: 1, KV: binding.F32, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	dir := testutil.Testdata(t, set)
	told := 0
	a, err := Answer(t.Context(), e, some, dir, func(done, right int) {
		if told++; done != told || right != told {
			t.Errorf("%d done, %d right, want %d", done, right, told)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if a.Count != len(some) || a.Right != len(some) || a.Share != 1 || a.Error != 0 || len(a.Tasks) != len(some) || len(a.Wrong) != 0 {
		t.Errorf("%+v", a)
	}
	other := "something else"
	wrong := some[0]
	wrong.Expected = &other
	a, err = Answer(t.Context(), e, []Item{wrong, some[0]}, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.Right != 1 || a.Count != 2 || a.Share != 0.5 || math.Abs(a.Error-math.Sqrt(0.125)) > 1e-12 || len(a.Wrong) != 1 || a.Wrong[0].Want != other {
		t.Errorf("one of two: %+v", a)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Answer(ctx, e, some, dir, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}

// TestSkipped: without a projector the questions with media are left out.
func TestSkipped(t *testing.T) {
	items, err := ReadSet(testutil.Testdata(t, set, "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Options{Model: tiny(t, "f32"), MMProj: "off", Threads: 1, KV: binding.F32, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	a, err := Answer(t.Context(), e, items[:2], testutil.Testdata(t, set), nil) // both have a picture
	if err != nil {
		t.Fatal(err)
	}
	if a.Skipped != 2 || a.Count != 0 || a.Share != 0 {
		t.Errorf("%+v", a)
	}
}

func TestRight(t *testing.T) {
	text := " yes\n"
	call := &ToolCall{"", "f", json.RawMessage(`{"a": 1, "b": [2]}`)}
	made := func(name, args string) []chat.ToolCall {
		return []chat.ToolCall{{Name: name, Arguments: json.RawMessage(args)}}
	}
	for _, tc := range []struct {
		name  string
		it    Item
		text  string
		calls []chat.ToolCall
		want  bool
	}{
		{"text", Item{Expected: &text}, "yes", nil, true},
		{"other text", Item{Expected: &text}, "Yes", nil, false},
		{"a call besides", Item{Expected: &text}, "yes", made("f", "{}"), false},
		{"call", Item{ExpectedCall: call}, "well", made("f", `{"b":[2],"a":1.0}`), true},
		{"other arguments", Item{ExpectedCall: call}, "", made("f", `{"b":[2]}`), false},
		{"arguments that are no JSON", Item{ExpectedCall: call}, "", made("f", `{"b":`), false},
		{"other name", Item{ExpectedCall: call}, "", made("g", `{"b":[2],"a":1}`), false},
		{"no call", Item{ExpectedCall: call}, "", nil, false},
		{"two calls", Item{ExpectedCall: call}, "", append(made("f", `{"b":[2],"a":1}`), made("f", "{}")...), false},
		{"no arguments", Item{ExpectedCall: &ToolCall{Name: "f"}}, "", made("f", "{}"), true},
		{"text and call", Item{Expected: &text, ExpectedCall: call}, "no", made("f", `{"b":[2],"a":1}`), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.it.right(tc.text, tc.calls); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestReadSetErrors(t *testing.T) {
	const messages = `"messages": [{"role": "user", "content": "hi"}]`
	for name, tc := range map[string]struct{ text, want string }{
		"empty":           {"\n\n", "no questions"},
		"no JSON":         {`{` + messages + `, "expected": "x"}` + "\n{", "line 2: unexpected end"},
		"nothing right":   {`{` + messages + `}`, "line 1: neither expected nor expected_tool_call"},
		"call":            {`{` + messages + `, "expected_tool_call": {}}`, "expected_tool_call has no name"},
		"no messages":     {`{"expected": "x"}`, "no messages"},
		"bad messages":    {`{"messages": [{"role": "critic", "content": "x"}], "expected": "x"}`, `unknown role "critic"`},
		"effort":          {`{` + messages + `, "expected": "x", "reasoning_effort": "huge"}`, "reasoning_effort: "},
		"effort twice":    {`{` + messages + `, "expected": "x", "reasoning_effort": "low", "thinking": true}`, "do not go together"},
		"negative length": {`{` + messages + `, "expected": "x", "max_tokens": -1}`, "max_tokens is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "set.jsonl")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadSet(path)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("error %v, want one of %s about %q", err, path, tc.want)
			}
		})
	}
}

func TestWindows(t *testing.T) {
	ids := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for _, tc := range []struct {
		name         string
		size, stride int
		want         []Window
	}{
		{"halves", 4, 0, []Window{{ids[0:4], 2}, {ids[4:8], 2}}},
		{"odd", 5, 0, []Window{{ids[0:5], 2}, {ids[5:10], 2}}},
		{"stride", 6, 2, []Window{{ids[0:6], 4}, {ids[2:8], 4}, {ids[4:10], 4}}},
		{"all of it", 10, 0, []Window{{ids, 5}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Windows(ids, tc.size, tc.stride)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if _, err := Windows(ids, 11, 0); !errors.Is(err, ErrTooShort) {
		t.Errorf("error %v, want that the text is too short", err)
	}
	for _, bad := range [][2]int{{1, 0}, {4, 4}, {4, -1}} {
		if _, err := Windows(ids, bad[0], bad[1]); err == nil {
			t.Errorf("windows of %d, %d apart: no error", bad[0], bad[1])
		}
	}
}

// TestPerplexity: in one step or in several, a text has the perplexity that the
// probabilities of its tokens, one after another, come to.
func TestPerplexity(t *testing.T) {
	s := scorer(t, "f32", 160)
	ids := s.Vocab.Encode(strings.Repeat("The picture has two shapes. A pink cross and a blue circle. ", 12))
	w := Window{ids[:150], 120} // beyond two steps of rowsPerStep
	got, err := s.Perplexity(t.Context(), []Window{w}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i := w.First; i < len(w.IDs); i++ {
		one, err := s.Perplexity(t.Context(), []Window{{w.IDs[:i+1], i}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if one.Tokens != 1 {
			t.Fatalf("%d tokens scored, want 1", one.Tokens)
		}
		sum += math.Log(one.Value)
	}
	want := math.Exp(sum / 30)
	if got.Tokens != 30 || math.Abs(got.Value-want) > 1e-3*want {
		t.Errorf("%+v, want %g", got, want)
	}
	if got.Error <= 0 {
		t.Errorf("standard error %g", got.Error)
	}
}

// TestAgainst: a model is no way from itself, and a little from its quantised form.
func TestAgainst(t *testing.T) {
	s, q := scorer(t, "f32", 512), scorer(t, "q8_0", 512)
	items, err := ReadSet(testutil.Testdata(t, set, "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	windows, skipped, err := s.SetWindows(items, 512)
	if err != nil {
		t.Fatal(err)
	}
	if len(windows) == 0 || len(windows)+skipped != len(items) {
		t.Fatalf("%d windows, %d skipped of %d", len(windows), skipped, len(items))
	}
	windows = windows[:6]
	self, err := s.Against(t.Context(), s, windows, nil)
	if err != nil {
		t.Fatal(err)
	}
	if self.Mean > 1e-9 || self.Top1 != 1 || self.DeltaP > 1e-9 || self.Model != self.Reference || self.Tokens == 0 {
		t.Errorf("a model against itself: %+v", self)
	}
	if self.Model.Value > 1.01 { // it answers its own set
		t.Errorf("perplexity %g of the answers that the model was trained on", self.Model.Value)
	}
	text := s.Vocab.Encode(strings.Repeat("What is the weather in Shanghai? 48 minus 10 is a blue circle. ", 12))
	if windows, err = Windows(text, 64, 0); err != nil {
		t.Fatal(err)
	}
	other, err := q.Against(t.Context(), s, windows, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !(other.Mean > 1e-6 && other.Mean < 0.1) || other.Top1 < 0.9 || other.Tokens != 32*len(windows) || other.Model == other.Reference {
		t.Errorf("q8_0 against f32: mean %g ± %g over %d tokens, same top %g, %+v and %+v", other.Mean, other.Error, other.Tokens, other.Top1, other.Model, other.Reference)
	}
	last := 0.0
	for _, p := range other.Percentiles {
		if p.KL < last {
			t.Errorf("percentiles %v do not rise", other.Percentiles)
		}
		last = p.KL
	}
}

func TestDivergence(t *testing.T) {
	logs := func(p ...float64) []float32 {
		var l []float32
		for _, x := range p {
			l = append(l, float32(math.Log(x)))
		}
		return l
	}
	for _, tc := range []struct {
		name string
		p, q []float32
		want float64
	}{
		{"equal", logs(0.25, 0.75), logs(0.25, 0.75), 0},
		{"a coin", logs(0.5, 0.5), logs(0.25, 0.75), 0.5*math.Log(2) + 0.5*math.Log(2.0/3)},
		{"certain", logs(1, 0), logs(0.5, 0.5), math.Log(2)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := divergence(tc.p, tc.q); math.Abs(got-tc.want) > 1e-6 {
				t.Errorf("%g, want %g", got, tc.want)
			}
		})
	}
}
