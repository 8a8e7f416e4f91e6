package parity

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Report is what make parity writes.
type Report struct {
	Commit      string // short hash
	Date        string // YYYY-MM-DD
	Plot        string // path of the plot, relative to the report
	Comparisons []Comparison
}

const (
	opsPackage = "binding/op"
	modelRoom  = "models/"
)

// tapRuns are the tests that compare every named result of a prefill, and what
// a column of the report calls them.
var tapRuns = map[string]string{
	"TestPrefillGolden":     "f32 cache",
	"TestPrefillGoldenHalf": "f16 cache",
}

// Markdown writes the report.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `# Parity

Written by `+"`make parity`"+` from commit %s on %s; do not edit. Every figure is one
that a test measured while it compared: the largest and the mean of
|got - want| over all compared values, 0 where they are equal. The tolerance is
what the test fails above ([numerics.md](numerics.md) says why); with a
relative part it is for each value. A device is named where ggml computes;
without one it is Go code.

`, r.Commit, r.Date)
	if len(r.tapped()) > 0 {
		fmt.Fprintf(&b, "![error of each layer](%s)\n\n", r.Plot)
	}
	r.devices(&b)
	r.ops(&b)
	r.taps(&b)
	r.parts(&b)
	r.others(&b)
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// devices lists what the tests ran on.
func (r *Report) devices(b *strings.Builder) {
	t := table{head: []string{"device", "hardware", "comparisons"}, right: 2}
	for _, g := range groupBy(r.Comparisons, func(c Comparison) [3]string { return [3]string{c.Device, c.Hardware} }) {
		if g.key[0] != "" {
			t.add(g.key[0], g.key[1], fmt.Sprint(len(g.of)))
		}
	}
	t.write(b, "Devices", "")
}

// ops has one row for each op, named result and tolerance.
func (r *Report) ops(b *strings.Builder) {
	cs := r.pick(func(c Comparison) bool { return c.Package == opsPackage && c.Measure == ErrorOf })
	slices.SortStableFunc(cs, func(a, b Comparison) int { // forms of an op run in any order
		return strings.Compare(topTest(a)+"\n"+a.subject(), topTest(b)+"\n"+b.subject())
	})
	t := table{head: []string{"test", "result", "device", "cases", "values", "max error", "mean error", "tolerance"}, right: 3}
	for _, g := range groupBy(cs, func(c Comparison) [4]string {
		return [4]string{topTest(c), c.subject(), c.Device, c.Tolerance.String()}
	}) {
		e := summary(g.of)
		t.add(strings.TrimPrefix(g.key[0], "Test"), g.key[1], g.key[2], fmt.Sprint(len(g.of)), fmt.Sprint(e.values),
			figure(e.max), figure(e.mean), g.key[3])
	}
	t.write(b, "Operations", "Each op of `binding/op` against a loop in float64.")
}

// taps has one row for each named result of a model's prefill, in the order of
// computation, and columns for each run.
func (r *Report) taps(b *strings.Builder) {
	for _, pkg := range r.tapped() {
		t := table{head: []string{"result"}, right: 1}
		for _, run := range pkg.runs {
			t.head = append(t.head, run.name+": max error", "mean error", "tolerance")
		}
		for _, name := range pkg.names {
			row := []string{"`" + name + "`"}
			for _, run := range pkg.runs {
				c, ok := run.of[name]
				if !ok {
					row = append(row, "", "", "")
					continue
				}
				row = append(row, figure(float64(c.Max)), figure(float64(c.Mean)), c.Tolerance.String())
			}
			t.add(row...)
		}
		t.write(b, "Layers of "+pkg.name, fmt.Sprintf(
			"Named results of a prefill with f32 weights against the reference, in the order of computation; on %s.", pkg.device))
	}
}

// parts has one row for each test of a model or of its preprocessing.
func (r *Report) parts(b *strings.Builder) {
	cs := r.pick(func(c Comparison) bool {
		return c.Measure == ErrorOf && c.Package != opsPackage && !c.isTap()
	})
	t := table{head: []string{"package", "test", "device", "comparisons", "values", "max error", "mean error", "tolerance"}, right: 3}
	for _, g := range groupBy(cs, func(c Comparison) [4]string {
		return [4]string{c.Package, topTest(c), c.Device, c.Tolerance.String()}
	}) {
		e := summary(g.of)
		t.add(g.key[0], words(g.key[1]), g.key[2], fmt.Sprint(len(g.of)), fmt.Sprint(e.values), figure(e.max), figure(e.mean), g.key[3])
	}
	t.write(b, "Parts of the models", `Tests with "golden" in their name compare with the reference. The others compare two ways
through this program that have to agree, such as a prompt in chunks with the
same prompt at once, or with values derived by hand.`)
}

// others has the comparisons with another measure than the error.
func (r *Report) others(b *strings.Builder) {
	cs := r.pick(func(c Comparison) bool { return c.Measure != ErrorOf })
	t := table{head: []string{"package", "test", "of", "device", "measure", "value", "limit"}, right: 5}
	for _, c := range cs {
		t.add(c.Package, words(topTest(c)), c.Name, c.Device, c.Measure, figure(float64(c.Value)), limit(float64(c.Limit)))
	}
	t.write(b, "Caches and weights of fewer bits", "Measures over all rows, for runs whose single values say little. `same argmax` is the share of\nrows, at least the limit; the others are at most the limit.")
}

func (r *Report) pick(want func(Comparison) bool) []Comparison {
	var cs []Comparison
	for _, c := range r.Comparisons {
		if want(c) {
			cs = append(cs, c)
		}
	}
	return cs
}

// tapped is one model's prefill, in one or more runs.
type tapped struct {
	name, device string
	names        []string // of the results, in the order of computation
	runs         []tapRun
}

type tapRun struct {
	name string
	of   map[string]Comparison
}

func (r *Report) tapped() []tapped {
	var models []tapped
	for _, g := range groupBy(r.pick(Comparison.isTap), func(c Comparison) [2]string { return [2]string{c.Package, c.Device} }) {
		m := tapped{name: strings.TrimPrefix(g.key[0], modelRoom), device: g.key[1]}
		for _, run := range groupBy(g.of, func(c Comparison) string { return tapRuns[topTest(c)] }) {
			of := map[string]Comparison{}
			for _, c := range run.of {
				if !slices.Contains(m.names, c.Name) {
					m.names = append(m.names, c.Name)
				}
				of[c.Name] = c
			}
			m.runs = append(m.runs, tapRun{run.key, of})
		}
		models = append(models, m)
	}
	return models
}

func (c Comparison) isTap() bool {
	return strings.HasPrefix(c.Package, modelRoom) && tapRuns[topTest(c)] != "" && c.Measure == ErrorOf
}

// subject is the name without what tells cases of one thing apart.
func (c Comparison) subject() string {
	name, _, _ := strings.Cut(c.Name, ": ")
	return name
}

// topTest is the name of the test function.
func topTest(c Comparison) string {
	name, _, _ := strings.Cut(c.Test, "/")
	return name
}

// words makes "image prompts golden" of TestImagePromptsGolden, "kv types" of TestKVTypes.
func words(test string) string {
	name := []rune(strings.TrimPrefix(test, "Test"))
	var b strings.Builder
	for i, c := range name {
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(name[i-1]) || i+1 < len(name) && unicode.IsLower(name[i+1])) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// sums are the figures of several comparisons together.
type sums struct {
	values    int
	max, mean float64
}

func summary(cs []Comparison) sums {
	var e sums
	for _, c := range cs {
		e.values += c.Values
		e.max = max(e.max, float64(c.Max))
		e.mean += float64(c.Mean) * float64(c.Values)
	}
	if e.values > 0 {
		e.mean /= float64(e.values)
	}
	return e
}

// group is a key with all comparisons that have it.
type group[K comparable] struct {
	key K
	of  []Comparison
}

// groupBy groups comparisons; groups come in the order of their first one.
func groupBy[K comparable](cs []Comparison, key func(Comparison) K) []group[K] {
	var groups []group[K]
	at := map[K]int{}
	for _, c := range cs {
		k := key(c)
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k] = i
			groups = append(groups, group[K]{key: k})
		}
		groups[i].of = append(groups[i].of, c)
	}
	return groups
}

// table is one of Markdown; columns from right on are aligned to the right.
type table struct {
	head  []string
	right int
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write leaves a table without rows out.
func (t *table) write(b *strings.Builder, title, intro string) {
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(b, "## %s\n\n", title)
	if intro != "" {
		fmt.Fprintf(b, "%s\n\n", intro)
	}
	fmt.Fprintf(b, "| %s |\n|", strings.Join(t.head, " | "))
	for i := range t.head {
		if i >= t.right {
			b.WriteString(" ---: |")
		} else {
			b.WriteString(" --- |")
		}
	}
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		fmt.Fprintf(b, "\n| %s |", strings.Join(row, " | "))
	}
	b.WriteString("\n\n")
}
