package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// A chat that no longer fits into the context goes on without its oldest turns.
// It is made shorter than it would have to be, so that the next turns find their
// prompt's state in the cache, which each change of the beginning makes useless.

// answerThatFits is answer, in a chat with as much of the conversation as leaves
// room for an answer. It returns the conversation that was answered.
func (s *Session) answerThatFits(ctx context.Context, conv chat.Conversation) (chat.Conversation, *engine.Result, error) {
	if s.Chatting && s.crowded(conv) {
		shorter, err := s.fit(ctx, conv)
		if err != nil {
			return conv, nil, err
		}
		conv = shorter
	}
	res, err := s.answer(ctx, conv)
	if s.Chatting && errors.Is(err, engine.ErrContextFull) {
		shorter, fitErr := s.fit(ctx, conv)
		if fitErr != nil || len(shorter.Messages) == len(conv.Messages) {
			return conv, res, err
		}
		conv = shorter
		res, err = s.answer(ctx, conv)
	}
	if err == nil {
		s.Used = res.PromptTokens + len(res.IDs)
	}
	return conv, res, err
}

// crowded reports whether a conversation may leave less than an eighth of the
// context for the answer. Three bytes of new text are about a token.
func (s *Session) crowded(conv chat.Conversation) bool {
	fresh := 0
	if n := len(conv.Messages); n > 0 {
		fresh = len(conversation.Text(conv.Messages[n-1])) / 3
	}
	return s.Used+fresh > s.Engine.Context()*7/8
}

// fit leaves out the oldest turns until a conversation takes at most three
// quarters of the context. System messages and the last turn stay.
func (s *Session) fit(ctx context.Context, conv chat.Conversation) (chat.Conversation, error) {
	whole := len(conv.Messages)
	for {
		r := s.Request
		r.Conversation = conv
		n, err := s.Engine.CountTokens(ctx, &r)
		full := errors.Is(err, engine.ErrContextFull) // of a text so long that it is not counted
		if err != nil && !full {
			return conv, err
		}
		shorter, ok := withoutOldest(conv.Messages)
		if !ok || !full && n <= s.Engine.Context()*3/4 {
			break
		}
		conv.Messages = shorter
	}
	if n := whole - len(conv.Messages); n > 0 {
		terminal.Dim(s.Stderr, fmt.Sprintf("note: the context of %d tokens is full: the oldest %d messages are left out (--ctx-size)", s.Engine.Context(), n))
	}
	return conv, nil
}

// withoutOldest leaves out what stands between the system messages and the second
// message of the user; ok is false if there is none.
func withoutOldest(messages []chat.Message) (rest []chat.Message, ok bool) {
	first := slices.IndexFunc(messages, func(m chat.Message) bool { return m.Role != chat.System && m.Role != chat.Developer })
	if first < 0 {
		return messages, false
	}
	next := slices.IndexFunc(messages[first+1:], func(m chat.Message) bool { return m.Role == chat.User })
	if next < 0 {
		return messages, false
	}
	return slices.Concat(messages[:first], messages[first+1+next:]), true
}
