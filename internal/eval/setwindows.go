package eval

import (
	"encoding/json"
	"fmt"

	"github.com/inkling-go/inkling/internal/chat"
)

// SetWindows makes windows of the questions of a set that have no media: the prompt,
// and behind it the expected answer, thoughts and call of a tool included, which is
// scored. Questions that are longer than size tokens are left out, as are those with
// media; skipped is how many.
func (s *Scorer) SetWindows(items []Item, size int) (list []Window, skipped int, err error) {
	template, err := s.file.StrOr("tokenizer.chat_template", "")
	if err != nil {
		return nil, 0, err
	}
	r, _, err := chat.NewRenderer(s.Vocab, template)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", s.Path, err)
	}
	for i := range items {
		it := &items[i]
		conv, err := it.conversation()
		if err != nil {
			return nil, 0, fmt.Errorf("question %s: %w", it.ID, err)
		}
		if len(conv.Media()) > 0 {
			skipped++
			continue
		}
		var w Window
		prompt, err := s.render(r, conv, it.effort(), true)
		if err == nil {
			conv.Messages = append(conv.Messages, it.answer())
			w.IDs, err = s.render(r, conv, it.effort(), false)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("question %s: %w", it.ID, err)
		}
		for w.First < min(len(prompt), len(w.IDs)) && prompt[w.First] == w.IDs[w.First] {
			w.First++
		}
		if len(w.IDs) > size || w.First == 0 || w.First == len(w.IDs) {
			skipped++
			continue
		}
		list = append(list, w)
	}
	return list, skipped, nil
}

// render returns the ids of a conversation without media.
func (s *Scorer) render(r chat.Renderer, conv chat.Conversation, effort string, asks bool) ([]int32, error) {
	segs, _, err := r.Render(conv, chat.Options{Effort: effort, AddGenerationPrompt: asks})
	if err != nil {
		return nil, err
	}
	ids, _, err := s.Vocab.EncodeSegments(segs, nil)
	return ids, err
}

// answer is the message that is expected.
func (it *Item) answer() chat.Message {
	m := chat.Message{Role: chat.Assistant, Reasoning: it.ExpectedReasoning}
	if it.Expected != nil {
		m.Content = []chat.Part{{Kind: chat.Text, Text: *it.Expected}}
	}
	if c := it.ExpectedCall; c != nil {
		args := c.Arguments
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		m.ToolCalls = []chat.ToolCall{{ID: c.ID, Name: c.Name, Arguments: args}}
	}
	return m
}
