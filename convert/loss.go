package convert

import "sync"

// loss adds up what rounding has cost a tensor.
type loss struct {
	mu              sync.Mutex
	squares, errors float64 // sums of w² and of (w - w')²
}

// add compares encoded rows with the weights.
func (l *loss) add(o *target, enc []byte, src []float32, row int64) error {
	got := make([]float32, len(src))
	if err := decodeRows(o.to, got, enc); err != nil {
		return err
	}
	var squares, errs float64
	for i, v := range src {
		w := float64(got[i])
		if o.factors != nil {
			m, _ := o.matrix(row + int64(i)/o.ne0)
			w *= float64(o.factors[m%len(o.factors)])
		}
		d := float64(v) - w
		squares += float64(v) * float64(v)
		errs += d * d
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.squares += squares
	l.errors += errs
	return nil
}
