package parity

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded are a few lines as tests write them: an op with two forms on two
// devices, a prefill with two caches, a part that failed, and a divergence.
const recorded = `{"package":"binding/op","test":"TestBand/GPU0/b","name":"flash","device":"GPU0","hardware":"a card","measure":"error","values":10,"max":"0.004","mean":"0.001","tolerance":{"abs":0.01}}
{"package":"binding/op","test":"TestBand/GPU0/a","name":"exact: sequence 0","device":"GPU0","hardware":"a card","measure":"error","values":10,"max":"2e-06","mean":"1e-06","tolerance":{"abs":5e-06}}
{"package":"binding/op","test":"TestBand/CPU/a","name":"exact: sequence 0","device":"CPU","hardware":"a|b","measure":"error","values":10,"max":"4e-06","mean":"1e-06","tolerance":{"abs":5e-06}}
{"package":"binding/op","test":"TestBand/CPU/a","name":"exact: sequence 1","device":"CPU","hardware":"a|b","measure":"error","values":30,"max":"1e-06","mean":"2e-07","tolerance":{"abs":5e-06}}
{"package":"models/m","test":"TestPrefillGolden","name":"hidden.layer0","device":"CPU","hardware":"a|b","measure":"error","values":4,"max":"1e-06","mean":"1e-07","tolerance":{"abs":0.0001,"rel":0.0001}}
{"package":"models/m","test":"TestPrefillGolden","name":"layer0.q","device":"CPU","hardware":"a|b","measure":"error","values":4,"tolerance":{}}
{"package":"models/m","test":"TestPrefillGolden","name":"logits","device":"CPU","hardware":"a|b","measure":"error","values":4,"max":"1e-05","mean":"2e-06","tolerance":{"abs":0.001}}
{"package":"models/m","test":"TestPrefillGoldenHalf","name":"hidden.layer0","device":"CPU","hardware":"a|b","measure":"error","values":4,"max":"0.001","mean":"0.0001","tolerance":{"mean":0.002}}
{"package":"models/m","test":"TestImagePromptsGolden/x","name":"x","device":"CPU","hardware":"a|b","measure":"error","values":4,"max":"+Inf","mean":"+Inf","tolerance":{}}
{"package":"models/m","test":"TestKVTypes","name":"q8_0 cache","device":"CPU","hardware":"a|b","measure":"mean KL","values":4,"value":"0.0012","limit":"0.01"}
`

const wantReport = `## Devices

| device | hardware | comparisons |
| --- | --- | ---: |
| GPU0 | a card | 2 |
| CPU | a\|b | 8 |

## Operations

Each op of ` + "`binding/op`" + ` against a loop in float64.

| test | result | device | cases | values | max error | mean error | tolerance |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
| Band | exact | GPU0 | 1 | 10 | 2.0e-6 | 1.0e-6 | 5e-6 |
| Band | exact | CPU | 2 | 40 | 4.0e-6 | 4.0e-7 | 5e-6 |
| Band | flash | GPU0 | 1 | 10 | 4.0e-3 | 1.0e-3 | 1e-2 |

## Layers of m

Named results of a prefill with f32 weights against the reference, in the order of computation; on CPU.

| result | f32 cache: max error | mean error | tolerance | f16 cache: max error | mean error | tolerance |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| ` + "`hidden.layer0`" + ` | 1.0e-6 | 1.0e-7 | 1e-4 + 1e-4·abs(want) | 1.0e-3 | 1.0e-4 | mean 2e-3 |
| ` + "`layer0.q`" + ` | 0 | 0 | exact |  |  |  |
| ` + "`logits`" + ` | 1.0e-5 | 2.0e-6 | 1e-3 |  |  |  |

## Parts of the models

Tests with "golden" in their name compare with the reference. The others compare two ways
through this program that have to agree, such as a prompt in chunks with the
same prompt at once, or with values derived by hand.

| package | test | device | comparisons | values | max error | mean error | tolerance |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
| models/m | image prompts golden | CPU | 1 | 4 | **+Inf** | **+Inf** | exact |

## Caches and weights of fewer bits

Measures over all rows, for runs whose single values say little. ` + "`same argmax`" + ` is the share of
rows, at least the limit; the others are at most the limit.

| package | test | of | device | measure | value | limit |
| --- | --- | --- | --- | --- | ---: | ---: |
| models/m | kv types | q8_0 cache | CPU | mean KL | 1.2e-3 | 1e-2 |
`

func report(t *testing.T) *Report {
	t.Helper()
	cs, err := Read(strings.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	return &Report{Commit: "abc1234", Date: "2026-02-03", Plot: "parity.svg", Comparisons: cs}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	if err := report(t).Markdown(&b); err != nil {
		t.Fatal(err)
	}
	head, tables, _ := strings.Cut(b.String(), "## ")
	for _, part := range []string{"from commit abc1234 on 2026-02-03;", "](parity.svg)"} {
		if !strings.Contains(head, part) {
			t.Errorf("the head does not say %q:\n%s", part, head)
		}
	}
	if diff := cmp.Diff(wantReport, "## "+tables); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

// TestPlot reads the drawing back: well-formed, all names there, and a point
// for each positive value: of the largest and the mean error in two runs.
func TestPlot(t *testing.T) {
	var b strings.Builder
	if err := report(t).WritePlot(&b); err != nil {
		t.Fatal(err)
	}
	var texts []string
	points := 0
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in %s", err, b.String())
		}
		switch x := token.(type) {
		case xml.StartElement:
			if x.Name.Local == "circle" {
				points++
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(x)); s != "" {
				texts = append(texts, s)
			}
		}
	}
	want := []string{
		"Error of each layer against the reference", "Error of each layer against the reference: m on CPU",
		"1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "|got − want|, log scale", "layer0", "logits",
		"f32 cache, max", "f32 cache, mean", "f16 cache, max", "f16 cache, mean", "f32 cache, tolerance",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if points != 6 {
		t.Errorf("%d points, want 6", points)
	}
}

func TestAppendRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	want := []Comparison{
		{Package: "p", Test: "T/a", Name: "x", Device: "CPU", Measure: ErrorOf, Values: 3, Max: 0.1, Mean: 1e-300, Tolerance: Tolerance{Rel: 1e-4}},
		{Package: "p", Test: "T", Name: "y\n", Measure: "NMSE", Value: Number(math.Inf(1)), Limit: 1},
	}
	for _, c := range want {
		if err := Append(path, c); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if _, err := Read(strings.NewReader("{}\n{\"max\":\"much\"}\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want one that names line 2", err)
	}
}

func TestFigures(t *testing.T) {
	for _, tt := range []struct {
		v             float64
		figure, limit string
	}{
		{0, "0", "0"},
		{1, "1.0", "1"},
		{0.95, "9.5e-1", "9.5e-1"},
		{1.26e-4, "1.3e-4", "1.26e-4"},
		{1e-12, "1.0e-12", "1e-12"},
		{250, "2.5e2", "2.5e2"},
		{1e10, "1.0e+10", "1e+10"},
		{math.Inf(1), "**+Inf**", "+Inf"},
	} {
		if got := figure(tt.v); got != tt.figure {
			t.Errorf("figure(%g) = %s, want %s", tt.v, got, tt.figure)
		}
		if got := limit(tt.v); got != tt.limit {
			t.Errorf("limit(%g) = %s, want %s", tt.v, got, tt.limit)
		}
	}
}

func TestWords(t *testing.T) {
	for test, want := range map[string]string{
		"TestImagePromptsGolden": "image prompts golden",
		"TestKVTypes":            "kv types",
		"TestFold":               "fold",
	} {
		if got := words(test); got != want {
			t.Errorf("words(%s) = %q, want %q", test, got, want)
		}
	}
}
