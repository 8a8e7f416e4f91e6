package chat

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/jinja"
	"github.com/inkling-go/inkling/internal/token"
)

// TestRecognition tells templates of Inkling's protocol from others over the same vocabulary, and their spelling of zero.
func TestRecognition(t *testing.T) {
	v, tiny := loadModel(t, tinyDir)
	_, fixture := loadModel(t, filepath.Join(randomDir, "original"))
	// A template with the protocol for texts, which prints the effort as the given expression.
	protocolTemplate := func(effort string) string {
		return `{%- set levels = {'none': 0.0, 'high': 0.9} -%}
{%- set x = levels[reasoning_effort] if reasoning_effort is string else reasoning_effort -%}
{%- for m in messages -%}
{%- if m.role == 'user' -%}{{- '<|message_system|><|content_text|>Thinking effort level: ' -}}{{- ` + effort + ` -}}{{- '<|end_message|>' -}}{%- endif -%}
{{- '<|message_' + m.role + '|><|content_text|>' + m.content + '<|end_message|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|message_model|>' -}}{%- endif -%}
{#- <|content_thinking|> -#}`
	}
	const own = `(((x * 100) | round | int) / 100) if ((x * 100) | round | int) > 0 else ((x * 100) | round | int)`
	for _, tc := range []struct {
		name, template string
		v              *token.Vocab
		kind, zero     string
	}{
		{"own template", tiny, v, KindInkling, "0.0"},
		{"no template", "", v, KindInkling, "0.0"},
		{"fixture: the tokens but another protocol", fixture, v, KindJinja, ""},
		{"prints the number as it is", protocolTemplate("x"), v, KindInkling, "0.0"},
		{"rounds by itself, zero as an integer", protocolTemplate(own), v, KindInkling, "0"},
		{"effort line in another frame", "PREFIX" + protocolTemplate("x"), v, KindJinja, ""},
		{"cannot be compiled", protocolTemplate("x") + "{% if %}", v, KindInkling, "0.0"},
		{"cannot be run", protocolTemplate("x") + "{{ raise_exception('no') }}", v, KindInkling, "0.0"},
		{"vocabulary without the tokens", protocolTemplate("x"), vocabWith(t, "<|im_start|>"), KindJinja, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, kind, err := NewRenderer(tc.v, tc.template)
			if err != nil || kind != tc.kind {
				t.Fatalf("kind %q, %v; want %q", kind, err, tc.kind)
			}
			if kind == KindJinja {
				return
			}
			segs, media, err := r.Render(Conversation{}, Options{Effort: "none"})
			if err != nil {
				t.Fatal(err)
			}
			want := "‹system›‹text›Thinking effort level: " + tc.zero + "‹end›\n"
			if got := short.Replace(Spell(tc.v, segs, media)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	for name, tc := range map[string]struct {
		template string
		v        *token.Vocab
		want     string
	}{
		"no template, no tokens": {"", vocabWith(t), "no chat template"},
		"broken template":        {"{% if %}", vocabWith(t), "chat template: line 1"},
		"huge template":          {strings.Repeat(" ", jinja.MaxTemplate+1), v, "bytes of source"},
	} {
		if _, _, err := NewRenderer(tc.v, tc.template); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

// TestZeroEffort checks the two spellings down to the ids.
func TestZeroEffort(t *testing.T) {
	v, _ := loadModel(t, tinyDir)
	p, _ := newProtocol(v)
	for zero, body := range map[string]string{"0.0": "Thinking effort level: 0.0", "0": "Thinking effort level: 0"} {
		segs, _, err := (&inklingRenderer{p: p, zero: zero}).Render(Conversation{}, Options{Effort: "none"})
		if err != nil {
			t.Fatal(err)
		}
		ids, _, err := v.EncodeSegments(segs, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]int32{p.system, p.text}, v.Encode(body)...)
		if d := cmp.Diff(append(want, p.endMessage), ids); d != "" {
			t.Errorf("%s (-want +got):\n%s", zero, d)
		}
	}
}

func TestEffort(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", "0.9"},
		{"none", "0.0"},
		{"minimal", "0.1"},
		{"low", "0.2"},
		{"medium", "0.7"},
		{"high", "0.9"},
		{"xhigh", "0.99"},
		{"max", "0.99"},
		{" High ", "0.9"},
		{"0.15", "0.15"},
		{"0.333", "0.33"},
		{"0.50", "0.5"},
		{"0", "0.0"},
		{"0.004", "0.0"},
		{"0.99", "0.99"},
		{"0.125", "0.12"}, // a tie in binary: to even
		{"0.145", "0.14"}, // below the tie in binary
		{"0.985", "0.98"}, // below the tie in binary
		{"1", ""},
		{"1.0", ""},
		{"0.991", ""},
		{"-0.1", ""},
		{"NaN", ""},
		{"Inf", ""},
		{"much", ""},
	} {
		f, err := ParseEffort(tc.in)
		if tc.want == "" {
			if err == nil {
				t.Errorf("ParseEffort(%q) = %v, want an error", tc.in, f)
			}
			continue
		}
		if err != nil || formatEffort(f, "0.0") != tc.want {
			t.Errorf("effort %q prints as %q (%v), want %q", tc.in, formatEffort(f, "0.0"), err, tc.want)
		}
	}
	if got := formatEffort(0, "0"); got != "0" {
		t.Errorf("zero of the llama.cpp family prints as %q", got)
	}
}
