package inspectcmd

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/describe"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/internal/gguf"
)

func printSummary(p *report.Printer, d *describe.Model) {
	p.Table("", func(row func(...string)) {
		file := d.File
		if d.Parts > 1 {
			file = fmt.Sprintf("%s and its %d parts", file, d.Parts)
		}
		row("file", file)
		row("size", report.ByteSize(d.Bytes))
		row("architecture", report.Printable(d.Architecture))
		if d.Name != "" {
			row("name", report.Printable(d.Name))
		}
		row("parameters", report.Parameters(d.Parameters))
		if d.Context > 0 {
			row("context", strconv.FormatUint(d.Context, 10))
		}
		row("quantisation", d.Quantisation)
		if d.Architecture != "clip" {
			row("projector", cmp.Or(d.Projector, "none"))
		}
	})
}

func printKeys(p *report.Printer, f *gguf.File) {
	keys := f.Keys()
	p.Table(fmt.Sprintf("keys: %d", len(keys)), func(row func(...string)) {
		for _, key := range keys {
			v, _ := f.Value(key)
			row(report.Printable(key), valueType(v), shortValue(v))
		}
	})
}

func printTensors(p *report.Printer, d *describe.Model) {
	p.Table(fmt.Sprintf("tensors: %d", len(d.Tensors)), func(row func(...string)) {
		for _, t := range d.Tensors {
			row(report.Printable(t.Name), t.Type, shape(t.Shape), report.ByteSize(t.Bytes))
		}
	})
	p.Table("types", func(row func(...string)) {
		for _, t := range d.Types {
			row(t.Type, fmt.Sprintf("%d tensors", t.Tensors), report.Parameters(t.Parameters)+" parameters", report.ByteSize(t.Bytes))
		}
	})
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
		return report.ShortScalar(v)
	}
	var s []string
	for i := range min(r.Len(), report.MaxElems) {
		s = append(s, report.ShortScalar(r.Index(i).Interface()))
	}
	if r.Len() > report.MaxElems {
		s = append(s, "...")
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// shape writes dimensions as docs/gguf-keys.md does.
func shape(dims []int64) string {
	var s []string
	for _, d := range dims {
		s = append(s, strconv.FormatInt(d, 10))
	}
	return "{" + strings.Join(s, ", ") + "}"
}
