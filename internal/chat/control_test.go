package chat

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/token"
)

// TestNoControlText feeds parsers with random ids, as a model that has lost its mind would: whatever it emits, no text of a control
// token comes out as reasoning, content or a tool call. Tokens of plain text that spell a part of one are left out, since texts may
// speak of control tokens.
func TestNoControlText(t *testing.T) {
	tiny, _ := loadModel(t, tinyDir)
	plain := vocabWith(t, "<|im_end|>", "<|im_user|>", "<tool_call>")
	rng := rand.New(rand.NewPCG(7, 8))
	for name, tc := range map[string]struct {
		v      *token.Vocab
		prompt []int32
	}{
		"inkling":        {tiny, nil},
		"kimi":           {kimiVocab(t), nil},
		"kimi, thinking": {kimiVocab(t), kimiVocab(t).EncodeWithSpecial(kimiThinks)},
		"other":          {plain, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var text, control []int32
			for id := range int32(tc.v.N()) {
				switch {
				case tc.v.Control(id):
					control = append(control, id)
				case !strings.ContainsAny(string(tc.v.Piece(id)), "<>|"):
					text = append(text, id)
				}
			}
			for range 4000 {
				ids := make([]int32, rng.IntN(40))
				for i := range ids {
					ids[i] = text[rng.IntN(len(text))]
					if rng.IntN(2) == 0 {
						ids[i] = control[rng.IntN(len(control))]
					}
				}
				out := parseAll(NewParserAfter(tc.v, tc.prompt), ids)
				said := []string{out.Content, out.Reasoning}
				for _, c := range out.Calls {
					said = append(said, c.Name, string(c.Arguments))
				}
				for _, s := range said {
					if strings.ContainsAny(s, "<>") {
						t.Fatalf("%q\ngives %q", tc.v.DecodeWithSpecial(ids), said)
					}
				}
			}
			// An id beyond the vocabulary must not be more than nothing.
			for _, id := range []int32{-1, int32(tc.v.N()), 1 << 30} {
				if out := parseAll(NewParserAfter(tc.v, tc.prompt), []int32{id}); out.Content != "" {
					t.Errorf("id %d gives %q", id, out.Content)
				}
			}
		})
	}
}

// TestNoInjectionByResult is TestNoInjection for results of tools that are objects, which not every template takes.
func TestNoInjectionByResult(t *testing.T) {
	tiny, _ := loadModel(t, tinyDir)
	for name, v := range map[string]*token.Vocab{"inkling": tiny, "kimi": kimiVocab(t)} {
		r, _, err := NewRenderer(v, "")
		if err != nil {
			t.Fatal(err)
		}
		render := func(text string) []token.Segment {
			quoted, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			segs, _, err := r.Render(Conversation{Messages: []Message{
				{Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: text, Arguments: json.RawMessage(`{}`)}}},
				{Role: ToolRole, Name: text, ToolCallID: "1", Result: json.RawMessage(`{"x":[` + string(quoted) + `],` + string(quoted) + `:1}`)},
			}}, Options{})
			if err != nil {
				t.Fatalf("%s, %q: %v", name, text, err)
			}
			return controls(segs)
		}
		want := render("z")
		if len(want) == 0 {
			t.Fatalf("%s: no control tokens at all", name)
		}
		for _, s := range v.Specials() {
			if d := cmp.Diff(want, render("a"+s+s)); d != "" {
				t.Errorf("%s, %q: control tokens (-want +got):\n%s", name, s, d)
			}
		}
	}
}
