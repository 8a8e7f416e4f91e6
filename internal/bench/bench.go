// Package bench measures how fast a model's steps are: prompts of several lengths,
// answers behind contexts of several depths, several sequences at once. What a step
// reads from memory is counted, so that its speed can be compared with what the
// machine's memory gives.
package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/models"
)

// Options say what to measure.
type Options struct {
	Prompt   []int     // rows of prompts; none: prompts are not measured
	Generate []int     // rows of answers, one by one
	Depth    []int     // rows that are there before
	Parallel []int     // sequences at once
	Draft    []int     // answers: guesses in each step; none: 0
	Accept   []float64 // rates by which guesses are right, by how far ahead they are; the last one holds beyond
	Repeat   int       // measurements of each
	UBatch   int       // prompt rows in one step
	KV       binding.DType
	Warmup   bool // compute each once before

	media []medium // see Loading.MMProj

	// Progress, if not nil, is told before each measurement.
	Progress func(test string, n, of int)
}

// Result is one line of the table.
type Result struct {
	Test     string    `json:"test"`              // pp512, tg128 @ d8192, image100
	Prompt   int       `json:"n_prompt"`          // rows of each sequence
	Generate int       `json:"n_gen"`             // rows of each sequence
	Depth    int       `json:"n_depth"`           // rows of each before
	Parallel int       `json:"n_parallel"`        // sequences at once
	Draft    int       `json:"n_draft,omitempty"` // guesses in each step
	Samples  []float64 `json:"samples_ts"`        // tokens a second of all sequences together, or rows of a medium
	Mean     float64   `json:"avg_ts"`
	Spread   float64   `json:"stddev_ts"`

	// BytesPerToken is what generating reads for one token: the weights that are
	// used and the keys and values, shared by the sequences of a step. 0 for prompts,
	// which compute more than they read.
	BytesPerToken int64   `json:"bytes_per_token,omitempty"`
	Bandwidth     float64 `json:"bandwidth,omitempty"`       // bytes a second
	OfMeasured    float64 `json:"bandwidth_share,omitempty"` // of what the memory gives

	Drafts *Drafts `json:"drafts,omitempty"`
	Tower  *Tower  `json:"tower,omitempty"` // of pictures and sounds

	// Graphs is what the GPU did with the graphs of the measured steps, those before
	// them included; nil on devices that record none.
	Graphs *binding.Replays `json:"graphs,omitempty"`

	// Nodes and Splits are those of the last step's graph: operations, and parts that
	// each run on one device.
	Nodes  int `json:"nodes"`
	Splits int `json:"graph_splits"`

	Reads *Reads `json:"experts_read,omitempty"` // of a file that is larger than memory
}

// Reads is what was chosen of experts that are mapped, the steps before the measured
// ones included.
type Reads struct {
	binding.Reads
	HitRate float64 `json:"hit_rate"` // share of the bytes that were in memory when they were chosen
}

// test is one measurement before it is made.
type test struct {
	prompt, generate, depth, parallel, draft int
}

func (t test) String() string {
	s := fmt.Sprintf("pp%d", t.prompt)
	if t.generate > 0 {
		s = fmt.Sprintf("tg%d", t.generate)
	}
	if t.depth > 0 {
		s += fmt.Sprintf(" @ d%d", t.depth)
	}
	if t.draft > 0 {
		s += fmt.Sprintf(" +%d", t.draft)
	}
	if t.parallel > 1 {
		s += fmt.Sprintf(" x%d", t.parallel)
	}
	return s
}

// tests lists what the options ask for: for each depth and number of sequences
// first the prompts, then the answers. Prompts that media are compared with are last.
func (o *Options) tests() []test {
	var list []test
	for _, np := range o.Parallel {
		for _, d := range o.Depth {
			for _, n := range o.Prompt {
				list = append(list, test{prompt: n, depth: d, parallel: np})
			}
			for _, n := range o.Generate {
				for _, draft := range o.drafts() {
					list = append(list, test{generate: n, depth: d, parallel: np, draft: draft})
				}
			}
		}
	}
	for _, md := range o.media {
		if t := md.prefill(); !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// drafts are the numbers of guesses.
func (o *Options) drafts() []int {
	if len(o.Draft) == 0 {
		return []int{0}
	}
	return o.Draft
}

// Run measures a model on its backend. costs says what a step reads; bandwidth is the machine's, 0
// if it is not known. Cancelling ctx ends it between two steps.
func Run(ctx context.Context, be *binding.Backend, m models.Model, o Options, costs Costs, bandwidth float64) ([]Result, error) {
	var results []Result
	if err := o.checkDrafts(m); err != nil {
		return nil, err
	}
	list := o.tests()
	for _, t := range list {
		if n := t.depth + t.prompt + t.generate; n > m.Config().Context {
			return nil, fmt.Errorf("%s: %d positions, the model was made for %d", t, n, m.Config().Context)
		}
	}
	for i, t := range list {
		if o.Progress != nil {
			o.Progress(t.String(), i, len(list)+len(o.media))
		}
		r := Result{Test: t.String(), Prompt: t.prompt, Generate: t.generate, Depth: t.depth, Parallel: t.parallel, Draft: t.draft}
		var err error
		count := counting(be, &r)
		if r.Samples, r.Drafts, err = measure(ctx, m, o, t); err != nil {
			return results, fmt.Errorf("%s: %w", t, err)
		}
		count()
		r.Mean, r.Spread = meanAndSpread(r.Samples)
		if t.generate > 0 && t.draft == 0 {
			r.BytesPerToken = costs.perToken(t.depth+t.generate/2, t.parallel)
			r.Bandwidth = float64(r.BytesPerToken) * r.Mean
			if bandwidth > 0 {
				r.OfMeasured = r.Bandwidth / bandwidth
			}
		}
		results = append(results, r)
	}
	for i, md := range o.media {
		if o.Progress != nil {
			o.Progress(md.name, len(list)+i, len(list)+len(o.media))
		}
		r, err := md.result(ctx, be.Parts()[0], o, results[slices.Index(list, md.prefill())])
		if err != nil {
			return results, fmt.Errorf("%s: %w", md.name, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// counting notes in r what the backend does until the returned function is called.
func counting(be *binding.Backend, r *Result) (done func()) {
	graphs, replays := be.Device().Replays()
	reads, reading := be.Reads()
	be.Watch = func(g *binding.Graph) { r.Nodes, r.Splits = g.Nodes(), g.Splits() }
	return func() {
		be.Watch = nil
		if replays {
			after, _ := be.Device().Replays()
			did := after.Sub(graphs)
			r.Graphs = &did
		}
		if reading {
			after, _ := be.Reads()
			did := after.Sub(reads)
			r.Reads = &Reads{did, did.HitRate()}
		}
	}
}

// measure makes the measurements of one test and returns tokens a second.
func measure(ctx context.Context, m models.Model, o Options, t test) (speeds []float64, drafts *Drafts, err error) {
	if t.draft > 0 {
		t.depth = max(t.depth, 1) // a guess goes on from a row that is there
	}
	rows := t.depth + t.prompt + t.generate
	if t.draft > 0 { // a sequence may get more than its share, and guesses
		rows = min(rows+t.generate*t.parallel+2*(t.draft+1), m.Config().Context)
	}
	c, err := m.NewCache(t.parallel, rows, o.KV)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	s := &stepper{ctx: ctx, m: m, c: c, ubatch: o.UBatch, logits: make([]float32, t.parallel*(t.draft+1)*m.Config().Vocab), ids: make([][]int32, t.parallel)}
	if t.draft > 0 {
		s.coin = newCoin(o.Accept)
		if d, ok := m.(models.Drafter); ok && d.MaxDraft() > 0 {
			s.drafter = d
		}
	}
	if err := s.prompts(t.depth); err != nil {
		return nil, nil, err
	}
	// What is there before is computed once and come back to.
	var start []models.Checkpoint
	for seq := range t.parallel {
		start = append(start, c.Checkpoint(seq))
	}
	runs := o.Repeat
	if o.Warmup {
		runs++
	}
	for i := range runs {
		began := time.Now()
		s.drafts = Drafts{}
		n, err := s.run(t)
		if err != nil {
			return nil, nil, err
		}
		took := time.Since(began).Seconds()
		if i >= runs-o.Repeat {
			speeds = append(speeds, float64(n)/took)
		}
		for seq, p := range start {
			s.ids[seq] = s.ids[seq][:t.depth]
			if t.depth == 0 {
				c.Reset(seq)
			} else if err := c.Restore(seq, p); err != nil {
				return nil, nil, err
			}
		}
	}
	if t.draft > 0 {
		s.drafts.settle(t.parallel)
		drafts = &s.drafts
	}
	return speeds, drafts, nil
}

// stepper makes steps of a model.
type stepper struct {
	ctx    context.Context
	m      models.Model
	c      models.Cache
	ubatch int
	logits []float32 // of one row of each sequence
	next   uint32    // of the tokens, see token
	ids    [][]int32 // of each sequence

	drafter models.Drafter // nil without
	coin    *coin
	drafts  Drafts
}

// run makes the steps of a test and returns the tokens that it made.
func (s *stepper) run(t test) (tokens int, err error) {
	tokens = t.parallel * (t.prompt + t.generate)
	switch {
	case t.prompt > 0:
		return tokens, s.prompts(t.prompt)
	case t.draft > 0:
		return s.guessed(t.draft, tokens)
	}
	for range t.generate {
		if err := s.step(1, s.c.Seqs()); err != nil {
			return 0, err
		}
	}
	return tokens, nil
}

// prompts adds n rows to each sequence, one sequence after another.
func (s *stepper) prompts(n int) error {
	for seq := range s.c.Seqs() {
		for end := s.c.Pos(seq) + n; s.c.Pos(seq) < end; {
			rows := min(s.ubatch, end-s.c.Pos(seq))
			b := s.batch(seq, rows)
			if err := s.forward(b); err != nil {
				return err
			}
			if err := s.follow(seq); err != nil {
				return err
			}
		}
	}
	return nil
}

// step adds n rows to each sequence in one step.
func (s *stepper) step(n, seqs int) error {
	var bs []models.Batch
	for seq := range seqs {
		bs = append(bs, s.batch(seq, n))
	}
	return s.forward(bs...)
}

func (s *stepper) forward(bs ...models.Batch) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	outs := 0
	for _, b := range bs {
		outs += len(b.Outputs)
	}
	return s.m.Forward(s.c, bs, models.Outputs{Logits: s.logits[:outs*s.m.Config().Vocab]})
}

func (s *stepper) batch(seq, n int) models.Batch {
	b := models.Batch{Seq: seq, Outputs: []int32{int32(n - 1)}}
	for range n {
		b.Tokens = append(b.Tokens, s.token())
	}
	s.ids[seq] = append(s.ids[seq], b.Tokens...)
	return b
}

// token draws an id. Different ones choose different experts, as text does.
func (s *stepper) token() int32 {
	s.next = s.next*1664525 + 1013904223 // Numerical Recipes' generator
	return int32(uint64(s.next) * uint64(s.m.Config().Vocab) >> 32)
}

// meanAndSpread returns the mean and the sample standard deviation.
func meanAndSpread(v []float64) (mean, deviation float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	if len(v) < 2 {
		return mean, 0
	}
	for _, x := range v {
		deviation += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(v)-1))
}
