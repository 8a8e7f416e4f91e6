package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// What a model is told of calls without a result.
const (
	refusedCall     = "error: the user does not allow this call"
	interruptedCall = "error: interrupted by the user"
	oneCallTooMany  = "error: no more calls are carried out in this answer"
)

// Converse answers a conversation, carries out the tools that the answer calls,
// and goes on until an answer calls none. It returns the conversation with what was
// added, and the last answer; on an error, what there was until there.
func (s *Session) Converse(ctx context.Context, conv chat.Conversation) (chat.Conversation, *engine.Result, error) {
	for round := 1; ; round++ {
		var res *engine.Result
		var err error
		conv, res, err = s.answerThatFits(ctx, conv)
		if m, ok := answerMessage(res); ok {
			conv.Messages = append(conv.Messages[:len(conv.Messages):len(conv.Messages)], m)
		}
		if err != nil || res.FinishReason != engine.FinishToolCalls || !s.carriesOut() {
			return conv, res, err
		}
		over := round > s.Tools.Rounds
		results, err := s.results(ctx, res.ToolCalls, over)
		conv.Messages = append(conv.Messages, results...)
		if err != nil {
			return conv, res, err
		}
		if over {
			fmt.Fprintf(s.Stderr, "note: the answer stops after %d rounds of calls (--tool-rounds)\n", s.Tools.Rounds)
			return conv, res, nil
		}
	}
}

// answerMessage is an answer as a message; ok is false for one that says nothing.
func answerMessage(res *engine.Result) (m chat.Message, ok bool) {
	if res == nil || res.Text == "" && res.Reasoning == "" && len(res.ToolCalls) == 0 {
		return m, false
	}
	m = conversation.TextMessage(chat.Assistant, nil, res.Text)
	m.Reasoning, m.ToolCalls = res.Reasoning, res.ToolCalls
	return m, true
}

// carriesOut reports whether somebody carries out calls: the command, or the
// person in a chat.
func (s *Session) carriesOut() bool { return s.Tools.Exec != "" || s.Chatting }

// results has a message for each call. After an interruption, and of calls that
// are too many, it says that there is no result: a call without one would be an
// odd conversation.
func (s *Session) results(ctx context.Context, calls []chat.ToolCall, tooMany bool) ([]chat.Message, error) {
	var messages []chat.Message
	var failed error
	for _, call := range calls {
		text := oneCallTooMany
		switch {
		case failed != nil:
			text = interruptedCall
		case !tooMany:
			if text, failed = s.carryOut(ctx, call); failed != nil {
				text = interruptedCall
			}
		}
		m := conversation.TextMessage(chat.ToolRole, nil, text)
		m.ToolCallID, m.Name = call.ID, call.Name
		messages = append(messages, m)
	}
	return messages, failed
}

// carryOut has one call carried out, if the person allows it.
func (s *Session) carryOut(ctx context.Context, call chat.ToolCall) (string, error) {
	name := terminal.OneLine(call.Name)
	if s.Tools.Exec == "" {
		return s.asked(ctx, fmt.Sprintf("result of %s: ", name))
	}
	fmt.Fprintf(s.Stderr, "call: %s %s\n", name, terminal.CompactJSON(call.Arguments))
	if !s.Tools.Yes && !s.allowed[call.Name] {
		answer, err := s.asked(ctx, fmt.Sprintf("Run %s? [y]es, [N]o, [a]lways: ", name))
		if err != nil {
			return "", err
		}
		switch strings.ToLower(answer) {
		case "a", "always":
			s.allowed[call.Name] = true
		case "y", "yes":
		default:
			return refusedCall, nil
		}
	}
	text, err := s.Tools.run(ctx, call)
	if err == nil && (s.Verbose || terminal.Is(s.Stderr)) {
		terminal.Dim(s.Stderr, fmt.Sprintf("result: %.400s", terminal.OneLine(text)))
	}
	return text, err
}

// asked asks the person. That they leave or press ctrl-C stops the answer.
func (s *Session) asked(ctx context.Context, question string) (string, error) {
	answer, err := s.Lines.Ask(ctx, question)
	if err != nil && !errors.Is(err, interrupt.Err) {
		fmt.Fprintln(s.Stderr) // the question's line
		err = fmt.Errorf("%w (%w)", interrupt.Err, err)
	}
	return answer, err
}
