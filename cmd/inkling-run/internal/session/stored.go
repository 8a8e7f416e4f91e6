package session

import (
	"runtime"
	"slices"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// adopt takes over what a model of the store brings along. What the command line
// says comes before it.
func (o *Options) adopt(m *store.Model) {
	for _, p := range []struct {
		flag string
		from *int
		to   *int
	}{
		{"ctx-size", m.Params.NumCtx, &o.EngineOptions.Context},
		{"batch-size", m.Params.NumBatch, &o.EngineOptions.Batch},
		{"threads", m.Params.NumThread, &o.EngineOptions.Threads},
		{"n", m.Params.NumPredict, &o.Request.MaxTokens},
	} {
		if p.from != nil && !o.Given(p.flag) {
			*p.to = max(*p.from, 0) // below 0: no limit
		}
	}
	if !o.Given("threads") { // the model may have been made on a larger machine
		o.EngineOptions.Threads = min(o.EngineOptions.Threads, runtime.NumCPU())
	}
	if !o.Given("stop") {
		o.Request.Stop = m.Params.Stop
	}
	if seed := m.Params.Seed; seed != nil && *seed >= 0 && !o.Given("seed") {
		drawn := o.Sampling
		o.Sampling = func(s engine.Sampling) engine.Sampling {
			s = drawn(s)
			s.Seed = uint64(*seed)
			return s
		}
	}
	if o.EngineOptions.Template = m.Template; o.Request.Raw {
		return
	}
	conv := &o.Request.Conversation
	conv.Messages = opened(m, conv.Messages)
}

// opened puts before a conversation what the model brings along: its system
// message, unless the conversation has one, and then its examples.
func opened(m *store.Model, own []chat.Message) []chat.Message {
	isSystem := func(msg chat.Message) bool { return msg.Role == chat.System }
	hasSystem := slices.ContainsFunc(own, isSystem)
	var list []chat.Message
	if m.System != "" && !hasSystem {
		list = append(list, conversation.TextMessage(chat.System, nil, m.System))
	}
	for len(own) > 0 && isSystem(own[0]) {
		list, own = append(list, own[0]), own[1:]
	}
	for _, msg := range m.Messages {
		if msg.Role != chat.System || !hasSystem {
			list = append(list, conversation.TextMessage(msg.Role, nil, msg.Content))
		}
	}
	return append(list, own...)
}

// StoredSampling puts a stored model's settings in place of those that its file
// recommends.
func StoredSampling(p store.Params, s engine.Sampling) engine.Sampling {
	for _, v := range []struct {
		from *float64
		to   *float32
	}{
		{p.Temperature, &s.Temperature},
		{p.TopP, &s.TopP},
		{p.MinP, &s.MinP},
		{p.RepeatPenalty, &s.RepeatPenalty},
		{p.PresencePenalty, &s.PresencePenalty},
		{p.FrequencyPenalty, &s.FrequencyPenalty},
	} {
		if v.from != nil {
			*v.to = float32(*v.from)
		}
	}
	for _, v := range []struct{ from, to *int }{{p.TopK, &s.TopK}, {p.RepeatLastN, &s.RepeatLastN}} {
		if v.from != nil {
			*v.to = *v.from
		}
	}
	return s
}
