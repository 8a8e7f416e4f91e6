package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseModelfile(t *testing.T) {
	const text = "\ufeff# a comment\r\n" + `
FROM ./model.gguf
from mmproj.gguf
PARAMETER temperature 0.7
parameter TOP_K 40
PARAMETER stop "<|end|>"
PARAMETER stop two words
PARAMETER num_ctx 8192
SYSTEM """
You are "Mario".
# not a comment
"""
TEMPLATE {{ messages[0]["content"] }}
MESSAGE user Hello
MESSAGE assistant "Hi "there""
LICENSE ""
`
	zero7, forty, ctx := 0.7, 40, 8192
	want := &Modelfile{
		From:     []From{{Ref: "./model.gguf", Line: 3}, {Ref: "mmproj.gguf", Line: 4}},
		Params:   Params{Temperature: &zero7, TopK: &forty, NumCtx: &ctx, Stop: []string{"<|end|>", "two words"}},
		System:   "\nYou are \"Mario\".\n# not a comment\n",
		Template: `{{ messages[0]["content"] }}`,
		Messages: []Message{{"user", "Hello"}, {"assistant", `Hi "there"`}},
		License:  []string{""},
	}
	got, err := ParseModelfile(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modelfile (-want +got):\n%s", diff)
	}
}

func TestParseModelfileErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no line", "# only this\n", "line 2: no FROM"},
		{"empty from", "FROM\n", "line 1: FROM without"},
		{"unknown instruction", "FROM x\nRUN ls\n", `line 2: "RUN" is no instruction`},
		{"unknown parameter", "FROM x\n\nPARAMETER warmth 3\n", `line 3: parameter "warmth" is not known; these are: temperature, `},
		{"no number", "FROM x\nPARAMETER top_p much\n", `line 2: parameter top_p: "much" is no number`},
		{"no whole number", "FROM x\nPARAMETER top_k 1.5\n", `line 2: parameter top_k: "1.5" is no whole number`},
		{"too large", "FROM x\nPARAMETER top_p 2\n", "line 2: parameter top_p is 2, want more than 0 and at most 1"},
		{"nothing", "FROM x\nPARAMETER repeat_penalty 0\n", "line 2: parameter repeat_penalty is 0, want more than 0"},
		{"too small", "FROM x\nPARAMETER num_ctx 0\n", "line 2: parameter num_ctx is 0, want at least 1"},
		{"infinite", "FROM x\nPARAMETER temperature inf\n", "line 2: parameter temperature is inf"},
		{"not a number", "FROM x\nPARAMETER temperature nan\n", "line 2: parameter temperature is nan"},
		{"empty stop", "FROM x\nPARAMETER stop \"\"\n", "line 2: parameter stop is empty"},
		{"nameless parameter", "FROM x\nPARAMETER\nSYSTEM a\n", "line 2: PARAMETER without a name"},
		{"open quotes", "FROM x\n\n\nSYSTEM \"\"\"a\nb\n", `line 4: the quotes """ that begin here are not closed`},
		{"open quote", "FROM x\nSYSTEM \"a\n", `line 2: the quotes " that begin here are not closed`},
		{"line after a long value", "FROM x\nSYSTEM \"\"\"a\nb\n\"\"\"\nNOPE\n", `line 5: "NOPE" is no instruction`},
		{"adapter", "FROM x\nADAPTER ./lora\n", "line 2: ADAPTER is not supported"},
		{"renderer", "FROM x\nRENDERER qwen3\n", "line 2: RENDERER names a part of Ollama's program"},
		{"role", "FROM x\nMESSAGE tool a\n", `line 2: MESSAGE "tool": want the role`},
		{"Go template", "FROM x\nTEMPLATE \"\"\"{{ if .System }}{{ .System }}{{ end }}\"\"\"\n", "line 2: TEMPLATE is in Ollama's Go template language"},
		{"Go template, trimmed", "FROM x\nTEMPLATE {{- range .Messages }}{{- end }}\n", "line 2: TEMPLATE is in Ollama's"},
		{"bytes", "FROM x\nSYSTEM \xff\n", "the file is not UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseModelfile(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckTemplateTakesJinja(t *testing.T) {
	for _, text := range []string{
		"", "{{ bos_token }}{% if x %}{{ endings }}{% endif %}", "{{- raise_exception('no') }}", "{% for m in messages %}{{ m.content }}{% endfor %}",
		"{{ ifs }}{{ messages[0].role }}{{ '$5' }}",
	} {
		if err := CheckTemplate(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestModelfileFormat(t *testing.T) {
	for _, v := range []string{
		"plain", " spaces ", `"quoted"`, `""`, `"`, `a"`, "two\nlines", "line\n\"\nquote", "\n", `""" in the midst`, "#", "\t", "a\rb", "x\r",
	} {
		f := &Modelfile{From: []From{{Ref: "x", Line: 1}}, System: v}
		text, err := f.Format()
		if err != nil {
			t.Errorf("%q: %v", v, err)
			continue
		}
		got, err := ParseModelfile(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q as %q: %v", v, text, err)
			continue
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("%q as %q (-want +got):\n%s", v, text, diff)
		}
	}
	if _, err := (&Modelfile{System: "a\"\"\"\nb"}).Format(); err == nil {
		t.Error("no error for what cannot be written")
	}
}

// FuzzParseModelfile checks that what is read can be written and read again.
func FuzzParseModelfile(f *testing.F) {
	f.Add("FROM x\nPARAMETER stop a\nSYSTEM \"\"\"b\n\"c\"\n\"\"\"\nMESSAGE user \"\"\n")
	f.Add("from x\r\nLICENSE \"\"\"\"\"\"\nTEMPLATE \"\"x\"\"\n")
	f.Add("# x\nFROM \"\"\"a\"\"\" \nPARAMETER seed -1")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseModelfile(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := m.Format()
		if err != nil {
			t.Skip() // three quotes at the end of a line between single ones
		}
		got, err := ParseModelfile(strings.NewReader(again))
		if err != nil {
			t.Fatalf("%q: %v", again, err)
		}
		for _, x := range []*Modelfile{m, got} {
			for i := range x.From {
				x.From[i].Line = 0
			}
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%q (-first +second):\n%s", again, diff)
		}
	})
}
