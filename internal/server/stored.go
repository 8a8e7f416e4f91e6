package server

import (
	"cmp"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// This file is what the settings of a stored model, those of its Modelfile, do to
// a request that is silent about them.

// params are the settings; none for a file.
func (m *Model) params() store.Params {
	if m.Stored == nil {
		return store.Params{}
	}
	return m.Stored.Params
}

// options say how to load the model. What the command line sets comes first.
func (m *Model) options(o engine.Options) engine.Options {
	o.Model, o.MMProj = m.Path, cmp.Or(m.MMProj, "off") // the catalog has looked for one
	p := m.params()
	for _, f := range []struct {
		to   *int
		from *int
	}{{&o.Context, p.NumCtx}, {&o.UBatch, p.NumBatch}, {&o.Threads, p.NumThread}} {
		if *f.to == 0 && f.from != nil {
			*f.to = *f.from
		}
	}
	if m.Stored != nil {
		o.Template = m.Stored.Template
		o.MTP = cmp.Or(o.MTP, m.Stored.MTP)
	}
	return o
}

// sampling are the model's settings in a request's words.
func (m *Model) sampling() sampling {
	p := m.params()
	s := sampling{
		Temperature: p.Temperature, TopP: p.TopP, MinP: p.MinP, TopK: p.TopK, RepeatPenalty: p.RepeatPenalty, RepeatLastN: p.RepeatLastN,
		PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
	}
	if p.Seed != nil && *p.Seed >= 0 { // below it is a new one each time
		seed := int64(*p.Seed)
		s.Seed = &seed
	}
	return s
}

// limits are where an answer ends if the request does not say.
func (m *Model) limits(maxTokens int, stop []string) (int, []string) {
	p := m.params()
	if maxTokens == 0 && p.NumPredict != nil {
		maxTokens = max(*p.NumPredict, 0)
	}
	if len(stop) == 0 {
		stop = p.Stop
	}
	return maxTokens, stop
}

// conversation puts the model's own messages before those of a request, and its
// system message if the request has none, as Ollama does.
func (m *Model) conversation(c chat.Conversation) chat.Conversation {
	if m.Stored == nil {
		return c
	}
	var before []chat.Message
	if m.Stored.System != "" && (len(c.Messages) == 0 || c.Messages[0].Role != chat.System && c.Messages[0].Role != chat.Developer) {
		before = append(before, textMessage(chat.System, m.Stored.System))
	}
	for _, msg := range m.Stored.Messages {
		before = append(before, textMessage(msg.Role, msg.Content))
	}
	c.Messages = append(before, c.Messages...)
	return c
}

func textMessage(role, s string) chat.Message {
	return chat.Message{Role: role, Content: []chat.Part{{Kind: chat.Text, Text: s}}}
}
