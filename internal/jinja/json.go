package jinja

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
)

// jsonStyle is what tojson can be told.
type jsonStyle struct {
	item, key string // separators
	indent    int    // -1: one line
	ascii     bool   // escape all else
	sorted    bool
}

// filterToJSON is transformers' tojson: json.dumps with ensure_ascii=False, and no escapes for HTML.
func filterToJSON(r *run, a arguments) Value {
	s := jsonStyle{item: ", ", key: ": ", indent: -1}
	s.ascii = truth(a.or(-1, "ensure_ascii", false))
	s.sorted = truth(a.or(-1, "sort_keys", false))
	if v, ok := a.get(1, "indent"); ok && v != nil {
		s.indent = index(v, "tojson: indent")
		s.item = ","
	}
	if v, ok := a.get(-1, "separators"); ok && v != nil {
		l, isList := v.(*List)
		if !isList || len(l.Items) != 2 {
			failf("tojson: separators must be two texts")
		}
		s.item, s.key = r.text(l.Items[0]), r.text(l.Items[1])
	}
	w := writer{r: r}
	w.json(a.list[0], s, 0)
	return w.b.String()
}

// json writes v as Python's json.dumps does.
func (w *writer) json(v Value, s jsonStyle, level int) {
	switch v := v.(type) {
	case nil:
		w.add("null")
	case bool:
		w.add(strconv.FormatBool(v))
	case int64:
		w.add(strconv.FormatInt(v, 10))
	case float64:
		switch {
		case math.IsNaN(v):
			w.add("NaN")
		case math.IsInf(v, 0):
			w.add(strings.Replace(formatFloat(v), "inf", "Infinity", 1))
		default:
			w.add(formatFloat(v))
		}
	case string:
		w.jsonString(v, s.ascii)
	case *List:
		w.jsonItems('[', ']', len(v.Items), s, level, func(i int) { w.json(v.Items[i], s, level+1) })
	case *Dict:
		keys := v.keys
		if s.sorted {
			keys = w.r.sortedKeys(v)
		}
		w.jsonItems('{', '}', len(keys), s, level, func(i int) {
			w.jsonString(keys[i], s.ascii)
			w.add(s.key)
			w.json(v.values[keys[i]], s, level+1)
		})
	default:
		failf("tojson: %s is not serializable", kindOf(v))
	}
}

func (w *writer) jsonItems(open, end byte, n int, s jsonStyle, level int, item func(i int)) {
	w.r.enter()
	w.add(string(open))
	for i := range n {
		if i > 0 {
			w.add(s.item)
		}
		w.newline(s, level+1)
		item(i)
	}
	if n > 0 {
		w.newline(s, level)
	}
	w.add(string(end))
	w.r.leave()
}

func (w *writer) newline(s jsonStyle, level int) {
	if s.indent < 0 {
		return
	}
	w.add("\n")
	w.add(w.r.repeat(" ", s.indent*level))
}

func (w *writer) jsonString(s string, ascii bool) {
	w.r.grow(len(s) + 2)
	w.b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			w.b.WriteByte('\\')
			w.b.WriteRune(c)
		case c == '\n':
			w.add(`\n`)
		case c == '\r':
			w.add(`\r`)
		case c == '\t':
			w.add(`\t`)
		case c == '\b':
			w.add(`\b`)
		case c == '\f':
			w.add(`\f`)
		case c < ' ' || ascii && c >= 0x7F && c < 0x10000:
			w.add(`\u` + hex(c, 4))
		case ascii && c >= 0x10000:
			c -= 0x10000
			w.add(`\u` + hex(0xD800+c>>10, 4) + `\u` + hex(0xDC00+c&0x3FF, 4))
		default:
			w.b.WriteRune(c)
		}
	}
	w.b.WriteByte('"')
}

// filterFromJSON reads JSON, with the members of objects in their order.
func filterFromJSON(r *run, a arguments) Value {
	s := r.str(a.list[0], "fromjson")
	r.grow(len(s))
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	v, err := r.readJSON(d)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		failf("fromjson: %w", err)
	}
	return v
}

func (r *run) readJSON(d *json.Decoder) (Value, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	r.items(1)
	r.enter()
	defer r.leave()
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			l := &List{}
			for d.More() {
				v, err := r.readJSON(d)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, v)
			}
			_, err = d.Token()
			return l, err
		}
		dict := NewDict()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := r.readJSON(d)
			if err != nil {
				return nil, err
			}
			r.items(1)
			dict.Set(key.(string), v) // the decoder lets no other keys through
		}
		_, err = d.Token()
		return dict, err
	case json.Number:
		if i, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return i, nil
		}
		return t.Float64()
	case string:
		r.grow(len(t))
		return t, nil
	}
	return t, nil
}
