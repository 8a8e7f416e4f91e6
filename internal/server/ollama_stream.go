package server

import (
	"net/http"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// ollamaForm says where a route has the text.
type ollamaForm int

const (
	ollamaInMessage ollamaForm = iota // /api/chat
	ollamaInText                      // /api/generate
)

// ollamaWriter writes the lines of an answer.
type ollamaWriter struct {
	stream *stream // nil: the answer is one object
	form   ollamaForm
	model  string
	begin  time.Time
	load   time.Duration
	call   chat.ToolCall // that is being streamed
}

// reply is a line with a piece of the answer.
func (o *ollamaWriter) reply(p ollamaText) *ollamaReply {
	r := &ollamaReply{Model: o.model, CreatedAt: time.Now().UTC()}
	if o.form == ollamaInText {
		r.ollamaText = &p
	} else {
		r.Message = &ollamaAnswer{Role: chat.Assistant, Content: p.Response, Thinking: p.Thinking, ToolCalls: p.ToolCalls}
	}
	return r
}

// whole is an answer that is not streamed.
func (o *ollamaWriter) whole(a *answer) *ollamaReply {
	p := ollamaText{Response: a.Text, Thinking: a.Reasoning}
	for i, c := range a.ToolCalls {
		p.ToolCalls = append(p.ToolCalls, ollamaCallOf(i, c))
	}
	r := o.reply(p)
	r.Logprobs = ollamaLogprobs(a.Tokens)
	return o.end(r, a)
}

// end says that the answer is done, why, and what it took.
func (o *ollamaWriter) end(r *ollamaReply, a *answer) *ollamaReply {
	r.Done, r.DoneReason = true, a.FinishReason
	if a.FinishReason == engine.FinishToolCalls { // which Ollama has no word for
		r.DoneReason = engine.FinishStop
	}
	r.ollamaTimes = ollamaTimes{
		TotalDuration: time.Since(o.begin), LoadDuration: o.load,
		PromptEvalCount: a.PromptTokens, PromptEvalDuration: a.PromptTime,
		EvalCount: a.GeneratedTokens, EvalDuration: a.GenerateTime,
	}
	return r
}

// event writes what happens to the answer. A call is a line of its own.
func (o *ollamaWriter) event(e event) error {
	var p ollamaText
	switch e.Kind {
	case reasoningDelta:
		p.Thinking = e.Text
	case contentDelta:
		p.Response = e.Text
	case toolCallStart:
		o.call = chat.ToolCall{ID: e.ID, Name: e.Name}
		return nil
	case toolCallArgs:
		o.call.Arguments = append(o.call.Arguments, e.Text...)
		return nil
	case toolCallEnd:
		p.ToolCalls = []ollamaToolCall{ollamaCallOf(e.Call, o.call)}
	case finished:
		r := o.end(o.reply(p), e.Answer)
		r.Logprobs = ollamaLogprobs(e.Tokens)
		return o.stream.line(r)
	default:
		return nil
	}
	r := o.reply(p)
	r.Logprobs = ollamaLogprobs(e.Tokens)
	return o.stream.line(r)
}

// nothing is the answer to a request that only loads or unloads the model.
func (o *ollamaWriter) nothing(w http.ResponseWriter, reason string) error {
	r := o.reply(ollamaText{})
	r.Done, r.DoneReason = true, reason
	if o.stream != nil {
		return o.stream.line(r)
	}
	writeJSON(w, http.StatusOK, r)
	return nil
}

func ollamaLogprobs(tokens []engine.Token) []ollamaLogprob {
	var all []ollamaLogprob
	for _, t := range logprobsOf(tokens).Content {
		all = append(all, ollamaLogprob(t))
	}
	return all
}
