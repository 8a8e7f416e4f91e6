package eval

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/token"
	"github.com/inkling-go/inkling/models"
)

// Loading says how models are loaded for scoring.
type Loading struct {
	Threads int
	Devices devices.Options
	NoMmap  bool
	KV      binding.DType
	Window  int // tokens that a prediction can look back at, at most
}

// Scorer computes what a text model predicts.
type Scorer struct {
	Path  string
	Vocab *token.Vocab

	file  *gguf.File
	be    *binding.Backend
	model models.Model
	cache models.Cache
	bos   []int32 // what every window begins with: nothing, or one id
}

// rowsPerStep bounds the rows of a step, and so the memory of their logits.
const rowsPerStep = 64

// OpenScorer loads a model without media.
func OpenScorer(path string, l Loading) (_ *Scorer, err error) {
	s := &Scorer{Path: path}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.file, err = models.OpenFile(path); err != nil {
		return nil, err
	}
	choice, err := devices.Choose(l.Devices, devices.Subject{
		Model: s.file, Context: l.Window, Parallel: 1, UBatch: rowsPerStep, KV: l.KV, NoMmap: l.NoMmap,
	})
	if err != nil {
		return nil, err
	}
	if s.be, err = choice.Open(l.Threads); err != nil {
		return nil, err
	}
	if s.model, err = models.Open(s.file, models.Params{Backend: s.be, Place: choice.Place, NoMmap: l.NoMmap}); err != nil {
		return nil, err
	}
	if s.Vocab, err = token.FromGGUF(s.file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	addBOS, err := s.file.BoolOr("tokenizer.ggml.add_bos_token", false)
	if err != nil {
		return nil, err
	}
	if id, ok := s.Vocab.BOS(); ok && addBOS {
		s.bos = []int32{id}
	}
	if n := s.model.Config().Context; l.Window > n {
		return nil, fmt.Errorf("%s: windows of %d tokens are more than the %d positions that the model was made for", path, l.Window, n)
	}
	s.cache, err = s.model.NewCache(1, l.Window+len(s.bos), l.KV)
	return s, err
}

// Close frees the model.
func (s *Scorer) Close() error {
	if s.cache != nil {
		s.cache.Close()
	}
	if s.model != nil {
		s.model.Close()
	}
	if s.be != nil {
		s.be.Close()
	}
	if s.file != nil {
		return s.file.Close()
	}
	return nil
}

// Window is a run of tokens of which the predictions from First on are looked at:
// that of IDs[First] from those before it, and so on.
type Window struct {
	IDs   []int32
	First int // at least 1, or 0 if the model begins with a token of its own
}

// logits calls f with the predictions of a window: of IDs[i] logits, which are
// valid until f returns.
func (s *Scorer) logits(ctx context.Context, w Window, f func(i int, logits []float32) error) error {
	s.cache.Reset(0)
	ids := append(append([]int32{}, s.bos...), w.IDs...)
	first := w.First + len(s.bos) - 1 // the row that predicts IDs[First]
	vocab := s.model.Config().Vocab
	buf := make([]float32, rowsPerStep*vocab)
	for at := 0; at < len(ids)-1; {
		n := min(rowsPerStep, len(ids)-1-at)
		b := models.Batch{Tokens: ids[at : at+n]}
		for r := max(first-at, 0); r < n; r++ {
			b.Outputs = append(b.Outputs, int32(r))
		}
		looked := len(b.Outputs)
		if looked == 0 { // a step needs an output
			b.Outputs = []int32{int32(n - 1)}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.model.Forward(s.cache, []models.Batch{b}, models.Outputs{Logits: buf[:len(b.Outputs)*vocab]}); err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
		for j := range looked {
			i := at + int(b.Outputs[j]) + 1 - len(s.bos)
			if err := f(i, buf[j*vocab:(j+1)*vocab]); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}

// logSum is the logarithm of the sum of exponentials.
func logSum(logits []float32) float64 {
	most := math.Inf(-1)
	for _, x := range logits {
		most = max(most, float64(x))
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	return most + math.Log(sum)
}

// argmax is the first of the largest.
func argmax(logits []float32) int {
	best := 0
	for i, x := range logits {
		if x > logits[best] {
			best = i
		}
	}
	return best
}
