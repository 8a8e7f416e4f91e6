package engine

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/grammar"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// openDraft opens a checkpoint in F32 with options for guesses.
func openDraft(t testing.TB, checkpoint string, o Options) *Engine {
	t.Helper()
	o.Model = convertOnce(t, "f32", checkpoint)
	o.KV, o.Threads, o.Context = binding.F32, 1, 2048
	e, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// knowing guesses what it was told comes, but for every wrong-th token.
type knowing struct {
	ids    []int32
	wrong  int
	number int
}

func (k *knowing) MaxDraft() int                         { return MaxDraft }
func (k *knowing) Follow(_ models.Cache, _ ...int) error { return nil }

func (k *knowing) Draft(_ models.Cache, ds []models.Draft, n int) error {
	for i := range ds {
		at := len(ds[i].IDs)
		for _, id := range k.ids[min(at, len(k.ids)):min(at+n, len(k.ids))] {
			if k.number++; k.number%k.wrong == 0 {
				id = 1 + id%100
			}
			ds[i].Guess = append(ds[i].Guess, id)
		}
	}
	return nil
}

// guessWith puts a drafter into an idle engine.
func guessWith(t testing.TB, e *Engine, d models.Drafter, most int) {
	t.Helper()
	err := e.do(context.Background(), func() error { e.sched.spec.drafter, e.sched.spec.most = d, most; return nil })
	if err != nil {
		t.Fatal(err)
	}
}

func (it *item) answerWith(t *testing.T, e *Engine) *Result {
	t.Helper()
	res, err := e.Generate(context.Background(), it.request(t))
	if err != nil {
		t.Fatalf("item %s: %v", it.ID, err)
	}
	if !slices.Equal(res.IDs, it.Reference.IDs) {
		t.Errorf("item %s (%s): answered %q, want %q", it.ID, it.Task, e.Spell(res.IDs), e.Spell(it.Reference.IDs))
	}
	return res
}

// TestGuessesOfMTP: with one and with two tokens guessed ahead the evaluation set
// is answered as without, in about as many fewer steps.
func TestGuessesOfMTP(t *testing.T) {
	for n := 1; n <= 2; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := openDraft(t, "inkling-tiny", Options{Draft: n})
			var sum Drafts
			tokens := 0
			for _, it := range readItems(t) {
				res := it.answerWith(t, e)
				sum.sum(res.Drafts)
				tokens += len(res.IDs)
			}
			if len(sum.Drafted) != n || float64(sum.Accepted[0]) < 0.98*float64(sum.Drafted[0]-119) {
				t.Errorf("guesses %+v, want nearly all of %d depths right", sum, n)
			}
			if most := tokens/(n+1) + 119; sum.Rounds > most {
				t.Errorf("%d steps for %d tokens, want at most %d", sum.Rounds, tokens, most)
			}
			if err := e.do(context.Background(), func() error { return nil }); err != nil { // counts the last step
				t.Fatal(err)
			}
			if s := e.Stats(); !cmp.Equal(s.Drafts, sum) || s.DraftTime <= 0 || s.VerifyTime <= 0 || s.RollbackTime <= 0 {
				t.Errorf("stats %+v, want those of the results: %+v", s, sum)
			}
		})
	}
}

// TestWrongGuesses: however many tokens are guessed ahead and whichever of them
// are wrong, the answers are those of the reference. The MTP of the checkpoint has
// two depths, so deeper guesses come from somebody who knows.
func TestWrongGuesses(t *testing.T) {
	e := openDraft(t, "inkling-tiny", Options{Draft: 1})
	items := readItems(t)
	for n := 1; n <= 8; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var sum Drafts
			for i := n % 8; i < len(items); i += 8 {
				it := &items[i]
				k := &knowing{ids: slices.Concat(it.PromptIDs, it.Reference.IDs), wrong: 1 + i/8%4}
				guessWith(t, e, k, n)
				sum.sum(it.answerWith(t, e).Drafts)
			}
			if len(sum.Drafted) != n || sum.Accepted[0] == 0 || sum.Accepted[0] == sum.Drafted[0] {
				t.Errorf("guesses %+v, want right and wrong ones of %d tokens", sum, n)
			}
		})
	}
}

// TestGuessesOfRepetition: what the text holds already is guessed where there is
// no MTP, and changes no answer.
func TestGuessesOfRepetition(t *testing.T) {
	e := openDraft(t, "kimi-tiny", Options{Draft: 4})
	var sum Drafts
	for i, it := range readSet(t, "kimi-tiny-eval") {
		if i%6 == 0 && it.Reference.Margin > 1 {
			sum.sum(it.answerWith(t, e).Drafts)
		}
	}
	if sum.Rounds == 0 {
		t.Error("nothing was guessed")
	}
}

// TestRepetition: a text that repeats itself is generated in fewer steps.
func TestRepetition(t *testing.T) {
	r := strange(1)
	r.Prompt, r.MaxTokens = strings.Repeat("one two three four five six. ", 12), 80
	want := generate(t, openDraft(t, "kimi-tiny", Options{Draft: NoDraft}), r)
	e := openDraft(t, "kimi-tiny", Options{Draft: 4, NGram: true})
	got := generate(t, e, r)
	if !slices.Equal(got.IDs, want.IDs) {
		t.Errorf("%q, want %q", e.Spell(got.IDs), e.Spell(want.IDs))
	}
	if d := got.Drafts; d.Rounds == 0 || d.Accepted[0] == 0 {
		t.Errorf("guesses %+v, want some that were right", d)
	}
}

// strange are prompts that the checkpoint was never trained on.
func strange(n int) *Request {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	var b strings.Builder
	for range 20 + 7*n {
		b.WriteByte(" etaoinshrdlu,.0123456789"[rng.IntN(25)])
	}
	return &Request{Raw: true, Prompt: b.String(), MaxTokens: 60, Sampling: Sampling{TopP: 1, RepeatPenalty: 1}}
}

// TestStrangePrompts: where guesses are often wrong the tokens are those of an
// engine without guesses, one by one and several at once.
func TestStrangePrompts(t *testing.T) {
	plain := openDraft(t, "inkling-tiny", Options{Draft: NoDraft})
	e := openDraft(t, "inkling-tiny", Options{Draft: 2, Parallel: 4})
	var want [][]int32
	var running []<-chan outcome
	var sum Drafts
	for n := range 12 {
		want = append(want, generate(t, plain, strange(n)).IDs)
		res := generate(t, e, strange(n))
		if !slices.Equal(res.IDs, want[n]) {
			t.Errorf("prompt %d: %q, want %q", n, e.Spell(res.IDs), e.Spell(want[n]))
		}
		sum.sum(res.Drafts)
	}
	if sum.Accepted[0] < sum.Drafted[0]/10 || sum.Accepted[0] > sum.Drafted[0]*9/10 {
		t.Errorf("guesses %+v, want many right and many wrong ones", sum)
	}
	for n := range 12 {
		running = append(running, start(context.Background(), e, strange(n)))
	}
	for n, c := range running {
		if o := <-c; o.err != nil || !slices.Equal(o.res.IDs, want[n]) {
			t.Errorf("prompt %d beside others: %v, %v, want %v", n, o.res, o.err, want[n])
		}
	}
	if s := e.Stats(); s.Batches[4] == 0 {
		t.Errorf("no step had four sequences: %v", s.Batches)
	}
}

// setting is a request with something special about it.
type setting struct {
	name   string
	change func(*Request)
}

// settings are requests for all that acts on single tokens.
func settings(t *testing.T) []setting {
	t.Helper()
	re, err := grammar.FromRegex("[A-Z][a-z ]{3,12}[.!]")
	if err != nil {
		t.Fatal(err)
	}
	warm := Sampling{Temperature: 1.5, TopP: 1, RepeatPenalty: 1}
	return []setting{
		{"greedy", func(*Request) {}},
		{"stop string", func(r *Request) { r.Stop = []string{"is P", "nothing"} }},
		{"limit of 1", func(r *Request) { r.MaxTokens = 1 }},
		{"limit of 2", func(r *Request) { r.MaxTokens = 2 }},
		{"limit of 5", func(r *Request) { r.MaxTokens = 5 }},
		{"log-probabilities", func(r *Request) { r.Logprobs, r.TopLogprobs = true, 3 }},
		{"grammar", func(r *Request) { r.Grammar = re }},
		{"grammar, warm", func(r *Request) { r.Grammar, r.Sampling = re, warm }},
		{"warm", func(r *Request) { r.Sampling = warm }},
		{"top-k", func(r *Request) { r.Sampling = warm; r.Sampling.TopK = 5 }},
		{"top-p and min-p", func(r *Request) { r.Sampling = warm; r.Sampling.TopP, r.Sampling.MinP = 0.9, 0.02 }},
		{"penalties", func(r *Request) {
			r.Sampling = warm
			r.Sampling.RepeatPenalty, r.Sampling.RepeatLastN, r.Sampling.PresencePenalty, r.Sampling.FrequencyPenalty = 1.3, 32, 0.5, 0.5
		}},
		{"bias", func(r *Request) { r.LogitBias = map[int32]float32{1218: -100} }},
	}
}

// request is the setting's.
func (s setting) request(t *testing.T, seed uint64) *Request {
	t.Helper()
	r := question("What is the capital of France?")
	r.MaxTokens = 40
	s.change(r)
	r.Sampling.Seed = seed
	return r
}

// TestGuessesAndSettings: penalties, grammars, stop strings, log-probabilities,
// limits and seeds act on every token in order, guessed or not.
func TestGuessesAndSettings(t *testing.T) {
	plain := openDraft(t, "inkling-tiny", Options{Draft: NoDraft})
	e := openDraft(t, "inkling-tiny", Options{Draft: 2})
	for _, tc := range settings(t) {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(4) {
				var want, got []Token
				r := tc.request(t, seed)
				r.OnToken = func(tok Token) error { want = append(want, tok); return nil }
				a := generate(t, plain, r)
				r.OnToken = func(tok Token) error { got = append(got, tok); return nil }
				b := generate(t, e, r)
				near := cmp.Comparer(func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-3 })
				if diff := cmp.Diff(want, got, near); diff != "" {
					t.Fatalf("seed %d: tokens (-without guesses +with):\n%s", seed, diff)
				}
				if a.Text != b.Text || a.FinishReason != b.FinishReason || a.StopSequence != b.StopSequence {
					t.Errorf("seed %d: %q %s %q, want %q %s %q", seed, b.Text, b.FinishReason, b.StopSequence, a.Text, a.FinishReason, a.StopSequence)
				}
				if r.MaxTokens > 1 && b.Drafts.Rounds == 0 {
					t.Error("nothing was guessed")
				}
			}
		})
	}
}

// TestSettingsBesideEachOther: so they do in requests that are answered at once, four
// in each step, which come and go as their answers end.
func TestSettingsBesideEachOther(t *testing.T) {
	plain := openDraft(t, "inkling-tiny", Options{Draft: NoDraft})
	e := openDraft(t, "inkling-tiny", Options{Draft: 2, Parallel: 4})
	list := settings(t)
	var want []*Result
	for i, tc := range list {
		want = append(want, generate(t, plain, tc.request(t, uint64(i))))
	}
	var running []<-chan outcome
	for i, tc := range list {
		running = append(running, start(context.Background(), e, tc.request(t, uint64(i))))
	}
	var sum Drafts
	for i, c := range running {
		o := <-c
		if o.err != nil {
			t.Errorf("%s: %v", list[i].name, o.err)
			continue
		}
		sum.sum(o.res.Drafts)
		if got, want := o.res, want[i]; !slices.Equal(got.IDs, want.IDs) || got.Text != want.Text || got.FinishReason != want.FinishReason || got.StopSequence != want.StopSequence {
			t.Errorf("%s: %q %s %q, want %q %s %q", list[i].name, got.Text, got.FinishReason, got.StopSequence, want.Text, want.FinishReason, want.StopSequence)
		}
	}
	if s := e.Stats(); s.Batches[4] == 0 || sum.Rounds == 0 || sum.Accepted[0] == sum.Drafted[0] {
		t.Errorf("steps by their sequences %v, guesses %+v, want some of four, and right and wrong ones", s.Batches, sum)
	}
}

// TestGuessesKeepTheDistribution: the first tokens of many answers are distributed
// as those of an engine without guesses; the guesses are the most likely token and
// so are right often, and wrong often.
func TestGuessesKeepTheDistribution(t *testing.T) {
	const answers = 1000
	plain := openDraft(t, "inkling-tiny", Options{Draft: NoDraft})
	e := openDraft(t, "inkling-tiny", Options{Draft: 2})
	r := strange(3)
	r.MaxTokens = 3
	r.Sampling = Sampling{Temperature: 8, TopK: 3, TopP: 1, RepeatPenalty: 1}
	count := func(e *Engine, from uint64) map[[3]int32]float64 {
		n := map[[3]int32]float64{}
		for i := range uint64(answers) {
			r.Sampling.Seed = from + i
			n[[3]int32(generate(t, e, r).IDs)]++
		}
		return n
	}
	a, b := count(plain, 0), count(e, 1<<32)
	d := e.Stats().Drafts
	if d.Accepted[0] < answers/10 || d.Accepted[0] > d.Drafted[0]*9/10 {
		t.Errorf("guesses %+v, want many right and many wrong ones", d)
	}
	// The two samples' chi-square statistic; rare outcomes count together.
	chi, cells, rareA, rareB := 0.0, 0, 0.0, 0.0
	for _, outcomes := range []map[[3]int32]float64{a, b} {
		for k := range outcomes {
			switch x, y := a[k], b[k]; {
			case x == 0 && y == 0:
			case x+y < 20:
				rareA, rareB = rareA+x, rareB+y
			default:
				chi += (x - y) * (x - y) / (x + y)
				cells++
			}
			delete(a, k)
			delete(b, k)
		}
	}
	if rareA+rareB > 0 {
		chi += (rareA - rareB) * (rareA - rareB) / (rareA + rareB)
		cells++
	}
	// The 0.999 quantile for k degrees of freedom, by Wilson and Hilferty (1931).
	k := float64(cells - 1)
	limit := k * math.Pow(1-2/(9*k)+3.09*math.Sqrt(2/(9*k)), 3)
	t.Logf("chi-square %.1f of %d outcomes, limit %.1f", chi, cells, limit)
	if cells < 8 || chi > limit {
		t.Errorf("chi-square %.1f of %d outcomes, want at most %.1f of at least 8", chi, cells, limit)
	}
}

// TestOneFile: depths in the model's own file are found there and guess as those in
// a file beside it, unless they are switched off.
func TestOneFile(t *testing.T) {
	text := convertOnce(t, "f32", "inkling-tiny")
	beside, err := FindMTP(text)
	if err != nil {
		t.Fatal(err)
	}
	path := testutil.OneFile(t, text, beside)
	it := readItems(t)[3]
	var want Drafts
	for _, tc := range []struct {
		name string
		o    Options
		most int
	}{
		{"two files", Options{Model: text, Draft: 2}, 2},
		{"one file", Options{Model: path, Draft: 2}, 2},
		{"the other file's in place of its own", Options{Model: path, MTP: beside, Draft: 2}, 2},
		{"off", Options{Model: path, MTP: "off"}, 0},
		{"no guesses", Options{Model: path, Draft: NoDraft}, 0},
		{"repetition in place of depths", Options{Model: path, NGram: true}, autoNGram},
	} {
		tc.o.KV, tc.o.Threads, tc.o.Context = binding.F32, 1, 2048
		tc.o.MMProj = filepath.Join(filepath.Dir(text), "mmproj-inkling-tiny-F32.gguf")
		e, err := Open(context.Background(), tc.o)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if e.sched.spec.most != tc.most {
			t.Errorf("%s: %d tokens ahead, want %d", tc.name, e.sched.spec.most, tc.most)
		}
		switch d := it.answerWith(t, e).Drafts; {
		case tc.name == "two files":
			want = d
		case tc.most == 2 && !cmp.Equal(d, want):
			t.Errorf("%s: guesses %+v, want %+v", tc.name, d, want)
		}
		e.Close()
	}
	if want.Rounds == 0 {
		t.Error("nothing was guessed")
	}
}

func TestDraftOptions(t *testing.T) {
	model := tiny(t, "f32")
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"too many", Options{Draft: 16}, "draft: 16"},
		{"too few", Options{Draft: -2}, "draft: -2"},
		{"no such file", Options{MTP: "nowhere.gguf"}, "nowhere.gguf"},
		{"a model as MTP", Options{MTP: model}, "holds no layers for multi-token prediction"},
	} {
		tc.o.Model = model
		if e, err := Open(context.Background(), tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
			if err == nil {
				e.Close()
			}
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
	for _, tc := range []struct {
		name string
		o    Options
		most int
	}{
		{"found beside", Options{}, 2},
		{"off", Options{MTP: "off"}, 0},
		{"no guesses", Options{Draft: NoDraft}, 0},
		{"one", Options{Draft: 1}, 1},
		{"more than depths", Options{Draft: 8}, 2},
		{"repetition", Options{Draft: 8, MTP: "off"}, 8},
		{"repetition in place of depths", Options{NGram: true}, autoNGram},
	} {
		if e := openDraft(t, "inkling-tiny", tc.o); e.sched.spec.most != tc.most {
			t.Errorf("%s: %d tokens ahead, want %d", tc.name, e.sched.spec.most, tc.most)
		}
	}
}
