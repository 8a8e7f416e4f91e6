package engine

import (
	"context"
	"fmt"
	"math"
)

// mean adds up hidden states.
type mean struct {
	sum []float64 // [n_embd]
}

// add takes more rows.
//
//	hidden: [n_embd, rows]
func (m *mean) add(hidden []float32) {
	for i, v := range hidden {
		m.sum[i%len(m.sum)] += float64(v)
	}
}

// unit is the direction of the mean: of length 1, or 0 if it has none.
func (m *mean) unit() []float32 {
	length := 0.0
	for _, v := range m.sum {
		length += v * v
	}
	length = math.Sqrt(length)
	out := make([]float32, len(m.sum))
	for i, v := range m.sum {
		if length > 0 {
			out[i] = float32(v / length)
		}
	}
	return out
}

// Embed returns a vector for each text, and the number of tokens of all: the
// mean over the rows of the hidden state after the final norm, scaled to length
// 1. The models were not trained for it; such vectors tell texts apart, but not
// as well as those of an embedding model.
func (e *Engine) Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error) {
	if err := e.enter(); err != nil {
		return nil, 0, err
	}
	defer e.leave()
	for i, text := range texts {
		p := rows{ids: e.vocab.Encode(text)}
		if len(p.ids) == 0 {
			return nil, 0, &RequestError{Param: "input", Err: fmt.Errorf("text %d is empty", i)}
		}
		if err := e.checkLength(p); err != nil {
			return nil, 0, fmt.Errorf("text %d: %w", i, err)
		}
		t, err := e.newTask(ctx, nil, p)
		if err != nil {
			return nil, 0, err
		}
		t.mean = &mean{sum: make([]float64, e.model.Config().Embd)}
		e.submit(t)
		for range t.events { // there are none but the end
		}
		if t.err != nil {
			return nil, 0, t.err
		}
		vectors = append(vectors, t.mean.unit())
		tokens += len(p.ids)
	}
	return vectors, tokens, nil
}
