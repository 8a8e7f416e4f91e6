package jinja

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// hostile are templates that would run for ever, or take all memory or all of the stack, each with the limit that ends it.
var hostile = map[string]struct{ template, what string }{
	"recursion":            {`{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`, "levels"},
	"recursion of two":     {`{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}`, "levels"},
	"recursive default":    {`{% macro m(a=m()) %}{% endmacro %}{{ m() }}`, "levels"},
	"recursive caller":     {`{% set n = namespace() %}{% macro m() %}{% set n.f = caller %}{% endmacro %}{% call m() %}{{ n.f() }}{% endcall %}{{ n.f() }}`, "levels"},
	"nested macros":        {`{% macro m(k) %}{% macro n() %}{{ m(k) }}{% endmacro %}{{ n() }}{% endmacro %}{{ m(1) }}`, "levels"},
	"two calls per level":  {`{% macro m(k) %}{% if k %}{{ m(k - 1) }}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(100) }}`, "steps"},
	"long range":           {`{% for i in range(10 ** 9) %}{% endfor %}`, "items of a range"},
	"nested loops":         {`{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}`, "steps bytes"},
	"lists of ranges":      {`{% set n = namespace(l=[]) %}{% for i in range(99999) %}{% set n.l = n.l + [range(99999)] %}{% endfor %}`, "bytes"},
	"growing while looped": {`{% set l = [1] %}{% for i in range(99999) %}{{ l.append(l) }}{% set l = l + l %}{% endfor %}`, "bytes"},
	"doubling":             {`{% set n = namespace(s='ab') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}`, "bytes"},
	"doubling without loop": {
		`{% set s = 'ab' %}` + strings.Repeat(`{% set s = s ~ s %}`, 60), "bytes",
	},
	"repetition":         {`{{ 'a' * 10 ** 9 }}`, "bytes"},
	"repeated list":      {`{{ [1] * 10 ** 9 }}`, "bytes"},
	"repeated often":     {`{{ 'abc' * 9223372036854775807 }}`, "bytes"},
	"replacement":        {`{% set s = 'a' * 1000000 %}{{ s | replace('a', s) }}`, "bytes"},
	"replaced nothing":   {`{% set s = 'a' * 1000000 %}{{ s.replace('', s) }}`, "bytes"},
	"join":               {`{% set s = 'a' * 1000000 %}{{ range(99999) | join(s) }}`, "bytes"},
	"indent":             {`{{ ('\n' * 1000000) | indent(1000000, true, true) }}`, "bytes"},
	"indent of JSON":     {`{{ [1, [2]] | tojson(indent=1000000000) }}`, "bytes"},
	"escapes of JSON":    {`{{ ('\x01' * 10000000) | tojson }}`, "bytes steps"},
	"doubled lists":      {`{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}`, "bytes steps"},
	"doubled dicts":      {`{% set n = namespace(d={}) %}{% for i in range(60) %}{% set n.d = {'a': n.d, 'b': n.d} %}{% endfor %}{{ n.d | tojson }}`, "bytes steps"},
	"equal doubled":      {`{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}`, "steps"},
	"cycle as JSON":      {`{% set l = [] %}{% set x = l.append(l) %}{{ l | tojson }}`, "levels"},
	"cycle as text":      {`{% set l = [] %}{% set x = l.append(l) %}{{ l }}`, "levels"},
	"cycle of dicts":     {`{% set d = {} %}{% set x = d.update({'d': d}) %}{{ d ~ '' }}`, "levels"},
	"cycle compared":     {`{% set l = [] %}{% set x = l.append(l) %}{% set m = [] %}{% set x = m.append(m) %}{{ l == m }}`, "levels"},
	"deep list":          {`{% set n = namespace(l=[]) %}{% for i in range(99999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l | string | length }}`, "levels"},
	"deep JSON":          {`{{ ('[' * 100000) | fromjson }}`, "levels"},
	"quadratic search":   {`{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% if 'b' in s %}{% endif %}{% endfor %}`, "steps"},
	"quadratic index":    {`{% set s = 'é' * 1000000 %}{% for i in range(99999) %}{{ s[i] }}{% endfor %}`, "steps"},
	"split":              {`{% for i in range(99999) %}{% set x = ('a,' * 10000).split(',') %}{% endfor %}`, "bytes steps"},
	"letters":            {`{% set s = 'a' * 10000000 %}{{ s | list }}`, "bytes"},
	"sort":               {`{% set l = range(99999) | list %}{% for i in range(99999) %}{% set x = l | sort %}{% endfor %}`, "bytes steps"},
	"width":              {`{% for i in range(99999) %}{{ '%99.99f%99.99f' | format(1, 2) }}{% endfor %}{% for i in range(99999) %}{% for j in range(999) %}{{ '%99s' % '' }}{% endfor %}{% endfor %}`, "bytes steps"},
	"map of filters":     {`{% set s = 'a' * 1000000 %}{{ range(99999) | map('replace', '', s) | list }}`, "bytes"},
	"deep scopes":        {`{% macro m(k) %}{% macro n() %}{% for i in range(99999) %}{{ undefined }}{% endfor %}{{ m(k) }}{% endmacro %}{{ n() }}{% endmacro %}{{ m(1) }}`, "bytes steps"},
	"nested expressions": {`{{ ` + strings.Repeat("(", 60000) + `1` + strings.Repeat(")", 60000) + ` }}`, "levels of expressions"},
	"nested lists":       {`{{ ` + strings.Repeat("[", 60000) + ` }}`, "levels of expressions"},
	"nested subscripts":  {`{{ ` + strings.Repeat("a[", 40000) + ` }}`, "levels of expressions"},
	"nested tests":       {`{{ a is in ` + strings.Repeat("[", 40000) + ` }}`, "levels of expressions"},
	"nested conditions":  {strings.Repeat(`{% if a %}`, 10000), "levels of statements"},
	"nested elses":       {`{{ ` + strings.Repeat("a if b else ", 10000) + ` c }}`, "levels of expressions"},
	"long sum":           {`{{ 1` + strings.Repeat("+1", 60000) + ` }}`, "operators in a row"},
	"many signs":         {`{{ ` + strings.Repeat("-", 60000) + `1 }}`, "operators in a row"},
	"many nots":          {`{{ ` + strings.Repeat("not ", 30000) + `1 }}`, "operators in a row"},
	"many filters":       {`{{ 1` + strings.Repeat("|e", 60000) + ` }}`, "operators in a row"},
	"many attributes":    {`{{ a` + strings.Repeat(".b", 60000) + ` }}`, "operators in a row"},
	"many ifs":           {`{{ a` + strings.Repeat(" if a", 20000) + ` }}`, "operators in a row"},
	"large source":       {strings.Repeat(" ", MaxTemplate+1), "bytes of source"},
}

// TestLimits runs hostile templates. All of what each takes, garbage included, must stay under 256 MiB.
func TestLimits(t *testing.T) {
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := render(tc.template, nil, Limits{})
			runtime.ReadMemStats(&after)
			var limit *LimitError
			if !errors.As(err, &limit) || !strings.Contains(" "+tc.what+" ", " "+limit.What+" ") && tc.what != limit.What {
				t.Errorf("error %v, want the limit of %s", err, tc.what)
			}
			const most = 256 << 20
			if made := after.TotalAlloc - before.TotalAlloc; made > most {
				t.Errorf("%d bytes taken, at most %d wanted", made, most)
			}
		})
	}
}

// TestLimitsCount checks the numbers of the limits themselves, with templates that just fit and that just do not.
func TestLimitsCount(t *testing.T) {
	loops := func(n int) string { return fmt.Sprintf(`{%% for i in range(%d) %%}x{%% endfor %%}`, n) }
	for _, tc := range []struct {
		name, template string
		l              Limits
		ok             bool
	}{
		{"steps", loops(100), Limits{Steps: 4000}, true},
		{"too many steps", loops(100), Limits{Steps: 400}, false},
		{"bytes", `{{ 'a' * 1000 }}`, Limits{Bytes: 4000}, true},
		{"too many bytes", `{{ 'a' * 1000 }}`, Limits{Bytes: 1500}, false},
		{"depth", `{{ [[[[1]]]] }}`, Limits{Depth: 10}, true},
		{"too deep", `{{ [[[[1]]]] }}`, Limits{Depth: 4}, false},
		{"range", loops(maxRange), Limits{Steps: 1 << 30, Bytes: 1 << 30}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := render(tc.template, nil, tc.l)
			var limit *LimitError
			if tc.ok && err != nil || !tc.ok && !errors.As(err, &limit) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestConcurrent renders one template in several goroutines.
func TestConcurrent(t *testing.T) {
	tm, err := Compile(`{% macro m(x) %}{{ caller() }}{{ x }}{% endmacro %}{% for i in range(50) %}{% call m(i) %}{{ n }}{% endcall %}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	want, err := tm.Render(map[string]Value{"n": "n"}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	for range 4 {
		go func() {
			text, err := tm.Render(map[string]Value{"n": "n"}, Limits{})
			got <- text + fmt.Sprint(err)
		}()
	}
	for range 4 {
		if s := <-got; s != want+"<nil>" {
			t.Errorf("%q, want %q", s, want)
		}
	}
}

// FuzzRender compiles and renders any template: it ends, with a text or an error.
func FuzzRender(f *testing.F) {
	for _, tc := range hostile {
		if len(tc.template) < 1000 {
			f.Add(tc.template)
		}
	}
	for _, s := range []string{
		`{% for m in messages %}{{ '<|im_start|>' + m.role }}{{ m['content'] | trim }}{% endfor %}{% if x %}{% endif %}`,
		`{{ s[::-1] ~ l | tojson(indent=2) | upper }}{% raw %}{{ x }}{% endraw %}{# c #}{%- set a, b = l[0], d.x -%}`,
		`{% call(x) m(l | map('upper') | select('eq', 'A')) %}{% endcall %}{% filter replace('a', 'b') %}a{% endfilter %}`,
		`{{ '%5.1f' % 2 }}{{ '{0}{x}'.format(1, x=2) }}{{ s.rsplit('a', 1) }}{{ l | batch(2, 0) | sort(reverse=true) | unique | sum }}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, template string) {
		l := NewList(int64(3), "B", 1.5, nil)
		d := NewDict()
		d.Set("x", l)
		text, err := render(template, map[string]Value{"s": "a é\n", "l": l, "d": d, "messages": NewList(d)}, Limits{Steps: 100_000, Bytes: 1 << 20, Depth: 500})
		if err == nil && len(text) > 1<<20 {
			t.Errorf("%d bytes of output", len(text))
		}
	})
}
