package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/inkling-go/inkling/internal/gguf"
)

// How much of a value is shown to people.
const (
	maxShownElems = 8
	maxShownBytes = 60
)

// filePrinter writes the description of a file for people. The first error
// sticks.
type filePrinter struct {
	w   io.Writer
	err error
}

// table writes rows in columns under a heading.
func (p *filePrinter) table(heading string, rows func(row func(cells ...string))) {
	if p.err != nil {
		return
	}
	if heading != "" {
		_, p.err = fmt.Fprintf(p.w, "%s\n", heading)
	}
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	rows(func(cells ...string) {
		fmt.Fprintf(t, "  %s\n", strings.Join(cells, "\t"))
	})
	p.err = cmp.Or(p.err, t.Flush())
}

func (p *filePrinter) summary(d *description) {
	p.table("", func(row func(...string)) {
		file := d.File
		if d.Parts > 1 {
			file = fmt.Sprintf("%s and its %d parts", file, d.Parts)
		}
		row("file", file)
		row("size", byteSize(d.Bytes))
		row("architecture", printable(d.Architecture))
		if d.Name != "" {
			row("name", printable(d.Name))
		}
		row("parameters", parameters(d.Parameters))
		if d.Context > 0 {
			row("context", strconv.FormatUint(d.Context, 10))
		}
		row("quantisation", d.Quantisation)
		if d.Architecture != "clip" {
			row("projector", cmp.Or(d.Projector, "none"))
		}
	})
}

func (p *filePrinter) keys(f *gguf.File) {
	keys := f.Keys()
	p.table(fmt.Sprintf("keys: %d", len(keys)), func(row func(...string)) {
		for _, key := range keys {
			v, _ := f.Value(key)
			row(printable(key), valueType(v), shortValue(v))
		}
	})
}

func (p *filePrinter) tensors(d *description) {
	p.table(fmt.Sprintf("tensors: %d", len(d.Tensors)), func(row func(...string)) {
		for _, t := range d.Tensors {
			row(printable(t.Name), t.Type, shape(t.Shape), byteSize(t.Bytes))
		}
	})
	p.table("types", func(row func(...string)) {
		for _, t := range d.Types {
			row(t.Type, fmt.Sprintf("%d tensors", t.Tensors), parameters(t.Parameters)+" parameters", byteSize(t.Bytes))
		}
	})
}

// shape writes dimensions as docs/gguf-keys.md does.
func shape(dims []int64) string {
	var s []string
	for _, d := range dims {
		s = append(s, strconv.FormatInt(d, 10))
	}
	return "{" + strings.Join(s, ", ") + "}"
}

func byteSize(n int64) string { return scaled(n, " KMGTPE") + "B" }

// parameters writes a number of weights as the names of models do: 16.4M.
func parameters(n int64) string { return scaled(n, "KMBT") }

// scaled writes n with one decimal and the unit it takes, thousands at a time; a
// space before the units stands before each.
func scaled(n int64, units string) string {
	sep := ""
	if units[0] == ' ' {
		sep, units = " ", units[1:]
	}
	if n < 1000 {
		return strconv.FormatInt(n, 10) + sep
	}
	x, u := float64(n)/1000, 0
	for ; x >= 999.95 && u < len(units)-1; x /= 1000 {
		u++
	}
	return fmt.Sprintf("%.1f%s%c", x, sep, units[u])
}

// valueType names the stored type of a key's value in the way of
// docs/gguf-keys.md, with the length of an array.
func valueType(v any) string {
	t := reflect.TypeOf(v)
	n := ""
	if t.Kind() == reflect.Slice {
		n = fmt.Sprintf("[%d]", reflect.ValueOf(v).Len())
		t = t.Elem()
	}
	name := t.Kind().String()
	for long, short := range map[string]string{"uint": "u", "int": "i", "float": "f"} {
		if digits, ok := strings.CutPrefix(name, long); ok {
			name = short + digits
			break
		}
	}
	return name + n
}

// shortValue writes a key's value on one line, of an array the first elements.
func shortValue(v any) string {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return shortScalar(v)
	}
	var s []string
	for i := range min(r.Len(), maxShownElems) {
		s = append(s, shortScalar(r.Index(i).Interface()))
	}
	if r.Len() > maxShownElems {
		s = append(s, "...")
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// shortScalar quotes strings: they may hold anything.
func shortScalar(v any) string {
	s, ok := v.(string)
	if !ok {
		return fmt.Sprint(v)
	}
	if len(s) <= maxShownBytes {
		return strconv.Quote(s)
	}
	cut := maxShownBytes
	for cut > maxShownBytes-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s... (%d bytes)", strconv.Quote(s[:cut]), len(s))
}

// printable quotes a name with characters that a terminal must not get.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}

// jsonValue replaces the floats that JSON has no numbers for by their names.
func jsonValue(v any) any {
	r := reflect.ValueOf(v)
	switch {
	case r.CanFloat():
		if f := r.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Sprint(v)
		}
	case r.Kind() == reflect.Slice:
		out := make([]any, r.Len())
		for i := range out {
			out[i] = jsonValue(r.Index(i).Interface())
		}
		return out
	}
	return v
}
