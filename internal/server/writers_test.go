package server

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// segment is a run of an answer that is of one kind.
type segment struct {
	kind       eventKind
	text, name string // a name of a call
}

// randomSegments makes an answer of thoughts, texts and calls in any order.
func randomSegments(r *rand.Rand) (all []segment) {
	for i := range 1 + r.IntN(6) {
		switch kind := []eventKind{reasoningDelta, contentDelta, toolCallStart}[r.IntN(3)]; {
		case kind == toolCallStart:
			all = append(all, segment{kind, fmt.Sprintf(`{"<é>":%d}`, i), "f"})
		case len(all) > 0 && all[len(all)-1].kind == kind:
		default:
			all = append(all, segment{kind, []string{"abc", "é中😀", "</b>&\u2028", "\n\ndata: x\n\n"}[r.IntN(4)], ""})
		}
	}
	return all
}

// play sends an answer as events, with texts cut at random places, or whole.
func play(t *testing.T, r *rand.Rand, segments []segment, cut bool, to func(event) error) {
	t.Helper()
	res := &engine.Result{FinishReason: engine.FinishStop, PromptTokens: 3, GeneratedTokens: 4}
	events := []event{{Kind: started, PromptTokens: 3}}
	calls := 0
	for _, s := range segments {
		if s.kind == toolCallStart {
			id := fmt.Sprintf("call_%d", calls)
			events = append(events, event{Kind: s.kind, Call: calls, ID: id, Name: s.name}, event{Kind: toolCallArgs, Call: calls, Text: s.text}, event{Kind: toolCallEnd, Call: calls})
			res.ToolCalls = append(res.ToolCalls, chat.ToolCall{ID: id, Name: s.name, Arguments: []byte(s.text)})
			calls++
			continue
		}
		for rest := s.text; rest != ""; {
			n := len(rest)
			if cut {
				_, n = utf8.DecodeRuneInString(rest)
				for n < len(rest) && r.IntN(2) == 0 {
					_, more := utf8.DecodeRuneInString(rest[n:])
					n += more
				}
			}
			events = append(events, event{Kind: s.kind, Text: rest[:n]})
			rest = rest[n:]
		}
		if s.kind == contentDelta {
			res.Text += s.text
		} else {
			res.Reasoning += s.text
		}
	}
	if calls > 0 {
		res.FinishReason = engine.FinishToolCalls
	}
	for _, e := range append(events, event{Kind: finished, Answer: &answer{Result: res}}) {
		if err := to(e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWritersCut: what a client puts together is the same wherever the answer was
// cut into pieces, and the same as without a stream, whatever the order of
// thoughts, texts and calls.
func TestWritersCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		segments := randomSegments(r)
		var id identity
		id.id, id.model = "resp_x", "tiny"

		whole := newAnthropicWriter("tiny")
		play(t, r, segments, false, whole.event)
		want := anthropicWhole(t, []byte(quote(whole.message)))
		responses := newResponsesWriter(&id, &responsesRequest{}, false)
		play(t, r, segments, false, responses.event)

		for _, p := range []struct {
			name string
			got  func(w *httptest.ResponseRecorder) said
			want said
		}{
			{"anthropic", func(w *httptest.ResponseRecorder) said {
				out := newAnthropicWriter("tiny")
				out.stream = newStream(w, typeSSE)
				play(t, r, segments, true, out.event)
				return anthropicStreamed(t, w.Body.Bytes())
			}, want},
			{"responses", func(w *httptest.ResponseRecorder) said {
				out := newResponsesWriter(&id, &responsesRequest{}, false)
				out.stream = newStream(w, typeSSE)
				play(t, r, segments, true, out.event)
				return responsesStreamed(t, w.Body.Bytes())
			}, responseSaid(t, *responses.response)},
			{"ollama", func(w *httptest.ResponseRecorder) said {
				out := &ollamaWriter{stream: newStream(w, typeNDJSON)}
				play(t, r, segments, true, out.event)
				return ollamaStreamed(t, w.Body.Bytes())
			}, want},
		} {
			if diff := cmp.Diff(p.want, p.got(httptest.NewRecorder())); diff != "" {
				t.Fatalf("%s of %+v: whole (-) and cut (+):\n%s", p.name, segments, diff)
			}
		}
	}
}
