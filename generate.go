package inkling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/grammar"
)

// Options are the settings of one answer. The zero value takes what the model's
// file recommends.
type Options struct {
	Temperature *float64 // divides the logits, from 0 on; 0: the most likely token, always
	TopP        *float64 // 0 to 1: sample from the most likely tokens that have this probability together
	TopK        *int     // sample from this many of the most likely tokens; 0: from all
	Seed        uint64   // of the random numbers; the same seed gives the same text

	MaxTokens int      // 0: until the model stops or the context is full
	Stop      []string // the answer, but not the reasoning, ends before the first of these
	Effort    string   // how long to think: none, minimal, low, medium, high, xhigh, max, or a number from 0 to 0.99

	Tools  []json.RawMessage // declarations in OpenAI's form: {"type": "function", "function": {…}}
	Schema json.RawMessage   // JSON schema that the answer is made to be valid against
}

// DeltaKind is the kind of a Delta.
type DeltaKind int

// Kinds of deltas.
const (
	ContentDelta   DeltaKind = iota // Text of the answer
	ReasoningDelta                  // Text of what the model thinks
	ToolCallDelta                   // a whole Call
	DoneDelta                       // the last one: Done
)

// Delta is a piece of an answer.
type Delta struct {
	Kind DeltaKind
	Text string    // whole characters; of the kinds with text
	Call *ToolCall // of a ToolCallDelta
	Done *Done     // of a DoneDelta
}

// Done says how an answer ended and what it took.
type Done struct {
	FinishReason string // stop, length or tool_calls
	Warnings     []string

	PromptTokens    int // tokens and media rows of the prompt
	CachedTokens    int // of them, those that an earlier prompt began with too
	GeneratedTokens int // reasoning, calls and control tokens included

	PromptTime   time.Duration // computing the rest of the prompt
	GenerateTime time.Duration // from there to the end
}

// errStopped ends a generation whose consumer wants no more.
var errStopped = errors.New("the consumer stopped")

// Generate lets the model answer the messages. It yields the answer as it comes
// and a DoneDelta at its end, or an error, after which nothing follows. Leaving
// the loop or ending the context stops the computation within a step.
//
// Errors for errors.Is: [ErrContextFull], [ErrBusy], [ErrClosed], [ErrNoProjector], and
// the context's own. Others are about the request and name what of it: a medium that
// can not be read, a schema that can not be kept, an option out of range.
func (s *Session) Generate(ctx context.Context, messages []Message, o Options) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		r, err := s.request(messages, o)
		if err != nil {
			yield(Delta{}, err)
			return
		}
		r.OnDelta = func(d chat.Delta) error {
			if !yield(deltaOf(d), nil) {
				return errStopped
			}
			return nil
		}
		res, err := s.eng.Generate(ctx, r)
		switch {
		case errors.Is(err, errStopped):
		case err != nil:
			yield(Delta{}, err)
		default:
			yield(Delta{Kind: DoneDelta, Done: doneOf(res)}, nil)
		}
	}
}

// Answer collects what Generate yields into the assistant's message, ready to be
// appended to the conversation.
func Answer(deltas iter.Seq2[Delta, error]) (Message, *Done, error) {
	m := Message{Role: RoleAssistant}
	var content, reasoning strings.Builder
	var done *Done
	for d, err := range deltas {
		if err != nil {
			return Message{}, nil, err
		}
		switch d.Kind {
		case ContentDelta:
			content.WriteString(d.Text)
		case ReasoningDelta:
			reasoning.WriteString(d.Text)
		case ToolCallDelta:
			m.ToolCalls = append(m.ToolCalls, *d.Call)
		case DoneDelta:
			done = d.Done
		}
	}
	m.Reasoning = reasoning.String()
	if content.Len() > 0 {
		m.Content = []Part{Text(content.String())}
	}
	return m, done, nil
}

func (s *Session) request(messages []Message, o Options) (*engine.Request, error) {
	r := &engine.Request{
		Conversation: conversation(messages),
		Chat:         chat.Options{Effort: o.Effort, Tools: o.Tools, AddGenerationPrompt: true},
		Sampling:     s.eng.Defaults(),
		MaxTokens:    o.MaxTokens, Stop: o.Stop, ParallelCalls: true,
		Load: engine.LoadLocal("."), Local: engine.LocalPaths("."),
	}
	r.Sampling.Seed = o.Seed
	if o.Temperature != nil {
		r.Sampling.Temperature = float32(*o.Temperature)
	}
	if o.TopP != nil {
		r.Sampling.TopP = float32(*o.TopP)
	}
	if o.TopK != nil {
		r.Sampling.TopK = *o.TopK
	}
	if o.Schema != nil {
		var err error
		if r.Grammar, err = grammar.FromJSONSchema(o.Schema); err != nil {
			return nil, fmt.Errorf("Options.Schema: %w", err)
		}
	}
	return r, nil
}

func deltaOf(d chat.Delta) Delta {
	switch d.Kind {
	case chat.ReasoningDelta:
		return Delta{Kind: ReasoningDelta, Text: d.Text}
	case chat.ToolCallDelta:
		call := ToolCall(*d.Call)
		return Delta{Kind: ToolCallDelta, Call: &call}
	default:
		return Delta{Kind: ContentDelta, Text: d.Text}
	}
}

func doneOf(r *engine.Result) *Done {
	return &Done{
		FinishReason: r.FinishReason, Warnings: r.Warnings,
		PromptTokens: r.PromptTokens, CachedTokens: r.Cached, GeneratedTokens: r.GeneratedTokens,
		PromptTime: r.PromptTime, GenerateTime: r.GenerateTime,
	}
}
