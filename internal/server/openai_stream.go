package server

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
)

// identity is what all pieces of an answer have in common.
type identity struct {
	id, model, fingerprint string
	created                int64
}

// openAIIdentity makes the identity of an answer by a model, which has to exist.
func (s *Server) openAIIdentity(prefix, model string) (*identity, error) {
	m, err := s.catalog.resolve(model)
	if err != nil {
		return nil, err
	}
	if model == "" {
		model = m.Name
	}
	return &identity{id: prefix + rand.Text(), model: model, fingerprint: m.fingerprint(s.opt.Version), created: time.Now().Unix()}, nil
}

func (id *identity) chat(object string) *chatResponse {
	return &chatResponse{
		ID: id.id, Object: object, Created: id.created, Model: id.model, SystemFingerprint: id.fingerprint, Choices: []chatChoice{},
	}
}

// endOfStream is the last event of OpenAI's streams.
const endOfStream = "data: [DONE]\n\n"

// streamChat answers in pieces.
func (s *Server) streamChat(w http.ResponseWriter, r *http.Request, t *turn, id *identity, includeUsage bool) error {
	out := newStream(w, typeSSE)
	c := chatStream{out, id, t.Logprobs}
	answers, err := s.generate(r.Context(), t, c.event)
	if err != nil {
		return out.fail(openAI, err)
	}
	if includeUsage {
		last := id.chat("chat.completion.chunk")
		last.Usage = usageOf(answers).openAI()
		if err := out.data(last); err != nil {
			return err
		}
	}
	return out.write([]byte(endOfStream))
}

// chatStream writes events as chunks.
type chatStream struct {
	out      *stream
	id       *identity
	logprobs bool
}

func (c *chatStream) event(e event) error {
	choice := chatChoice{Index: e.Choice, Delta: &chatAnswer{}}
	if c.logprobs && len(e.Tokens) > 0 {
		choice.Logprobs = logprobsOf(e.Tokens)
	}
	switch e.Kind {
	case started:
		choice.Delta.Role, choice.Delta.Content = chat.Assistant, text("")
	case reasoningDelta:
		choice.Delta.ReasoningContent = e.Text
	case contentDelta:
		choice.Delta.Content = text(e.Text)
	case toolCallStart:
		choice.Delta.ToolCalls = []toolCallJSON{{Index: &e.Call, ID: e.ID, Type: "function", Function: toolFunctionJSON{Name: e.Name}}}
	case toolCallArgs:
		choice.Delta.ToolCalls = []toolCallJSON{{Index: &e.Call, Function: toolFunctionJSON{Arguments: e.Text}}}
	case toolCallEnd:
		return nil
	case finished:
		choice.FinishReason = &e.Answer.FinishReason
	}
	chunk := c.id.chat("chat.completion.chunk")
	chunk.Choices = append(chunk.Choices, choice)
	return c.out.data(chunk)
}

// fail ends a stream with an error event, if it has begun, or returns the error
// for an answer of its own.
func (s *stream) fail(d dialect, err error) error {
	if !s.begun {
		return err
	}
	if asError(err).Status != statusClientClosed {
		body := d.body(asError(err))
		switch d { // that the client has gone is no second error
		case ollama:
			_ = s.line(body)
		case anthropic:
			_ = s.event("error", body)
		default:
			_ = s.data(body)
		}
	}
	return err
}
