package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/inkling-go/inkling/internal/gguf"
)

// TensorVerified compares an output tensor with the checkpoint.
type TensorVerified struct {
	File   string `json:"file"`
	Tensor string `json:"tensor"`
	Type   string `json:"type"`
	From   string `json:"from"` // the checkpoint tensor, or the first of several
	Exact  bool   `json:"exact"`

	Values        int64   `json:"values"`
	RelativeError float64 `json:"relative_error"` // root of the sum of squared errors over that of squares
	MaxError      float64 `json:"max_error"`
	Correlation   float64 `json:"correlation"`
}

// maxRelative is the relative error, by bits of the type, above which a tensor is not
// what the checkpoint has. It is several times what rounding normal weights costs, and
// far below what a wrong order of codes or a missing scale does.
func maxRelative(t gguf.Type) float64 {
	elems, bytes := t.Block()
	switch bits := float64(8*bytes) / float64(elems); {
	case bits > 30:
		return 1e-6 // F32 of F64
	case bits > 15:
		return 0x1p-7
	case bits > 8:
		return 0.02
	case bits > 6:
		return 0.1
	case bits > 4:
		return 0.3
	}
	return 0.7
}

// VerifyError reports outputs that are not what the checkpoint has.
type VerifyError struct {
	Count int
	First TensorVerified
}

// Error returns the count and the first tensor.
func (e *VerifyError) Error() string {
	return fmt.Sprintf("%s: %s not what the checkpoint has, first %s with relative error %.4g",
		e.First.File, plural(int64(e.Count), "tensor"), e.First.Tensor, e.First.RelativeError)
}

// comparison is a tensor in work.
type comparison struct {
	mu                  sync.Mutex
	got                 []byte // of the output
	exact               bool
	n                   int64
	sumWW, sumGG, sumWG float64 // of products of weights wanted and got
	errors, most        float64 // sum of squared errors, largest error
}

// verify compares the outputs with the checkpoint, tensor by tensor. The checkpoint
// is read a second time, again from front to back.
func (w *writing) verify(ctx context.Context, report *Report) (err error) {
	byTarget := make(map[*target]*comparison)
	for i := range w.outs {
		f, err := gguf.Open(w.outs[i].parts[0].path)
		if err != nil {
			return err
		}
		defer f.Close()
		for _, t := range w.outs[i].targets {
			info, ok := f.Tensor(t.Name)
			if !ok || info.Type != t.to || info.Size != t.rows*t.rowBytes {
				return fmt.Errorf("%s: tensor %s is %v of %d bytes, want %v of %d", t.path, t.Name, info.Type, info.Size, t.to, t.rows*t.rowBytes)
			}
			byTarget[t] = &comparison{got: f.Bytes(info), exact: true}
		}
	}
	if err := w.each(ctx, w.units, func(c *chunk, u *unit, a, b int64) error {
		defer w.release(u, a, b)
		if err := c.set(u, a, b); err != nil {
			return err
		}
		for _, x := range u.uses {
			if err := byTarget[x.target].add(c, x); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	bad := &VerifyError{}
	for _, t := range w.targets {
		if t.Literal != nil {
			continue
		}
		v := byTarget[t].result(t)
		report.Verified = append(report.Verified, v)
		if !v.Exact && !(v.RelativeError <= maxRelative(t.to)) {
			if bad.Count == 0 {
				bad.First = v
			}
			bad.Count++
		}
	}
	if bad.Count > 0 {
		return bad
	}
	return nil
}

// add compares what a use takes of a chunk.
func (v *comparison) add(c *chunk, x *use) error {
	first, end := x.span(c.a, c.b)
	if first == end {
		return nil
	}
	o := x.target
	got := v.got[(x.row+first)*o.rowBytes:][:(end-first)*o.rowBytes]
	if x.copies(c.unit) {
		want, err := c.encoded(x, first, end)
		if err == nil && !bytes.Equal(want, got) {
			err = v.compare(c, x, first, end, got)
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.n += (end - first) * o.ne0
		return err
	}
	v.mu.Lock()
	v.exact = false
	v.mu.Unlock()
	return errors.Join(v.compare(c, x, first, end, got), v.count((end-first)*o.ne0))
}

func (v *comparison) count(n int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.n += n
	return nil
}

// copies reports whether the output has the checkpoint's bytes or codes.
func (x *use) copies(u *unit) bool {
	if u.weights == nil {
		stored, plain := storedAs(u.from.DType)
		return plain && stored == x.target.to
	}
	t, ok := u.weights.Packs()
	return ok && t == x.target.to
}

// compare adds up how rows of a use differ from those of the output.
func (v *comparison) compare(c *chunk, x *use, first, end int64, enc []byte) error {
	want, err := c.numbers(x, first, end)
	if err != nil {
		return err
	}
	o := x.target
	got := make([]float32, len(want))
	if err := decodeRows(o.to, got, enc); err != nil {
		return err
	}
	var ww, gg, wg, errs, most float64
	for i, a := range want {
		g := float64(got[i]) * o.factor(x.row+first+int64(i)/o.ne0)
		w := float64(a)
		ww, gg, wg = ww+w*w, gg+g*g, wg+w*g
		errs += (w - g) * (w - g)
		most = max(most, math.Abs(w-g))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.exact = v.exact && errs == 0
	v.sumWW, v.sumGG, v.sumWG = v.sumWW+ww, v.sumGG+gg, v.sumWG+wg
	v.errors += errs
	v.most = max(v.most, most)
	return nil
}

// factor returns what the decoded weights of a row are multiplied with.
func (o *target) factor(row int64) float64 {
	if o.factors == nil {
		return 1
	}
	m, _ := o.matrix(row)
	return float64(o.factors[m%len(o.factors)])
}

// result sums up a tensor.
func (v *comparison) result(t *target) TensorVerified {
	r := TensorVerified{
		File: t.path, Tensor: t.Name, Type: t.to.String(), From: t.Parts[0].From.Name,
		Exact: v.exact, Values: v.n, MaxError: v.most, Correlation: 1,
	}
	if v.errors != 0 { // NaN too
		r.RelativeError = math.Sqrt(v.errors / v.sumWW)
		r.Correlation = v.sumWG / math.Sqrt(v.sumWW*v.sumGG)
	}
	for _, x := range []*float64{&r.RelativeError, &r.MaxError, &r.Correlation} {
		if *x-*x != 0 { // JSON has no such numbers
			*x = math.MaxFloat64
		}
	}
	return r
}
