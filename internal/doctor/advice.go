package doctor

import (
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/devices"
)

// outTypes are the converter's types with the bits that a weight takes in them on
// average, embeddings and attention included; larger ones first.
var outTypes = [...]struct {
	name string
	bits float64
}{
	{"bf16", 16}, {"q8_0", 8.5}, {"q6_k", 6.6}, {"q5_k_m", 5.7}, {"q4_k_m", 4.9}, {"q3_k_m", 3.9}, {"iq3_xxs", 3.2}, {"q2_k", 2.9},
}

// contextStep is the multiple that a context is proposed in.
const contextStep = 256

// advice says what to change so that the wanted context fits, nothing if it does.
func (p *plan) advice() ([]string, error) {
	list := []string{}
	wanted := p.o.Context
	r, err := p.row(wanted, p.o.KV)
	if err != nil || r.Fits == Fits {
		return list, err
	}
	if p.o.Parallel > 1 {
		alone := *p
		alone.o.Parallel = 1
		if one, err := alone.row(wanted, p.o.KV); err == nil && better(one.Fits, r.Fits) {
			list = append(list, fmt.Sprintf("--parallel 1: one sequence takes %s of cache instead of %s", devices.Size(one.KV+one.State), devices.Size(r.KV+r.State)))
		}
	}
	if p.o.KV != binding.Q8_0 {
		if q, err := p.row(wanted, binding.Q8_0); err == nil && better(q.Fits, r.Fits) { // an error: not for this model
			list = append(list, fmt.Sprintf("--kv q8_0: keys and values take %s instead of %s", devices.Size(q.KV), devices.Size(r.KV)))
		}
	}
	n, err := p.largest(wanted, r.Fits)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		list = append(list, fmt.Sprintf("--ctx-size %d is the longest context that fits", n))
	}
	if p.gpu {
		list = append(list, "--cpu-moe: the experts stay in the host's memory")
	}
	return append(list, p.smaller(r)), nil
}

// better reports whether a is more than b.
func better(a, b Fit) bool {
	order := []Fit{Lacks, Slow, Fits}
	return slices.Index(order, a) > slices.Index(order, b)
}

// largest finds the longest context below n that is better than was, 0 for none.
func (p *plan) largest(n int, was Fit) (int, error) {
	lo, hi := 0, (n-1)/contextStep // in steps; lo is good
	for lo < hi {
		mid := (lo + hi + 1) / 2
		r, err := p.row(mid*contextStep, p.o.KV)
		if err != nil {
			return 0, err
		}
		if better(r.Fits, was) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo * contextStep, nil
}

// smaller says which quantisation would leave room.
func (p *plan) smaller(r Row) string {
	others := p.weightBytes() - p.textBytes()
	left := p.o.Memory.Available - (r.Total - p.textBytes())
	need := devices.Size(max(r.Total-p.o.Memory.Available, 0))
	if left > 0 && p.parameters > 0 {
		bits := float64(left) * 8 / float64(p.parameters)
		now := float64(p.textBytes()) * 8 / float64(p.parameters)
		for _, t := range outTypes {
			if t.bits <= bits && t.bits < 0.95*now { // an average: the file may have one or the other bit more
				return fmt.Sprintf("a smaller quantisation: %s or less, %s of weights instead of %s",
					t.name, devices.Size(int64(t.bits/8*float64(p.parameters))), devices.Size(p.textBytes()))
			}
		}
	}
	if others > 0 {
		return fmt.Sprintf("%s more memory; --mmproj off leaves out %s", need, devices.Size(others))
	}
	return fmt.Sprintf("%s more memory: no quantisation is small enough", need)
}

// ascending sorts lengths and drops those that are none.
func ascending(list []int, most int) []int {
	list = slices.DeleteFunc(list, func(n int) bool { return n < 1 || n > most })
	slices.Sort(list)
	return slices.Compact(list)
}
