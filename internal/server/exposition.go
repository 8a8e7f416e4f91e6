package server

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// exposition writes metrics in Prometheus' text format, version 0.0.4.
type exposition struct{ b bytes.Buffer }

// family begins the samples of a metric; typ is counter, gauge or histogram.
func (x *exposition) family(name, typ, help string) {
	fmt.Fprintf(&x.b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, typ)
}

// sample writes a value with labels, names and values in turn.
func (x *exposition) sample(name string, v float64, labels ...string) {
	x.b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		x.b.WriteByte(sep)
		x.b.WriteString(labels[i] + `="` + labelEscapes.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		x.b.WriteByte('}')
	}
	x.b.WriteString(" " + number64(v) + "\n")
}

// labelEscapes are what the format escapes in values of labels.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func number64(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// histogram writes a histogram.
func (x *exposition) histogram(name string, h *histogram, labels ...string) {
	total := uint64(0)
	for i, n := range h.counts {
		total += n
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		}
		x.sample(name+"_bucket", float64(total), append(labels[:len(labels):len(labels)], "le", number64(bound))...)
	}
	x.sample(name+"_sum", h.sum, labels...)
	x.sample(name+"_count", float64(total), labels...)
}

// histogram counts values by size.
type histogram struct {
	bounds []float64 // upper ones, ascending
	counts []uint64  // one for each bound, and one for what is above all
	sum    float64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

func (h *histogram) observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += v
}
