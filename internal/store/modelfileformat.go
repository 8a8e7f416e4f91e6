package store

import (
	"fmt"
	"strings"
)

// Modelfile writes the Modelfile that makes the model from its files in the
// store.
func (m *Model) Modelfile() (string, error) {
	f := &Modelfile{Params: m.Params, System: m.System, Template: m.Template, Messages: m.Messages, License: m.License}
	for _, path := range []string{m.Model, m.MMProj, m.MTP} {
		if path != "" {
			f.From = append(f.From, From{Ref: path})
		}
	}
	text, err := f.Format()
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.Name, err)
	}
	return "# Modelfile of " + m.Name + "\n" + text, nil
}

// Format writes the Modelfile as text, which [ParseModelfile] reads again.
func (f *Modelfile) Format() (string, error) {
	var b strings.Builder
	var bad error
	line := func(name, v string) {
		q, ok := quoted(v)
		if !ok && bad == nil {
			bad = fmt.Errorf(`%s cannot be written in a Modelfile: it has """ at the end of a line`, name)
		}
		fmt.Fprintf(&b, "%s %s\n", name, q)
	}
	for _, from := range f.From {
		line("FROM", from.Ref)
	}
	f.Params.Each(func(name, v string) { line("PARAMETER "+name, v) })
	if f.System != "" {
		line("SYSTEM", f.System)
	}
	if f.Template != "" {
		line("TEMPLATE", f.Template)
	}
	for _, m := range f.Messages {
		line("MESSAGE "+m.Role, m.Content)
	}
	for _, text := range f.License {
		line("LICENSE", text)
	}
	return b.String(), bad
}

// quoted puts a value in the quotes that it needs, if any will do.
func quoted(v string) (string, bool) {
	plain := v != "" && !strings.ContainsAny(v, "\r\n") && strings.Trim(v, " \t") == v && v[0] != '"'
	if plain {
		return v, true
	}
	for _, q := range []string{`"`, `"""`} {
		if q == `"` && strings.ContainsRune(v, '\n') {
			continue // three look better around lines
		}
		// What closes must be the last quotes, not some before.
		at := closing[q].FindStringIndex(v + q)
		if at != nil && at[0] == len(v) && !strings.HasPrefix(v+q, `""`) {
			return q + v + q, true
		}
	}
	if at := closing[`"""`].FindStringIndex(v + `"""`); at != nil && at[0] == len(v) {
		return `"""` + v + `"""`, true
	}
	return "", false
}
