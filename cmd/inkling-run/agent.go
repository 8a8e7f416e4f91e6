package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// What a model is told of calls without a result.
const (
	refusedCall     = "error: the user does not allow this call"
	interruptedCall = "error: interrupted by the user"
	oneCallTooMany  = "error: no more calls are carried out in this answer"
)

// converse answers a conversation, carries out the tools that the answer calls,
// and goes on until an answer calls none. It returns the conversation with what was
// added, and the last answer; on an error, what there was until there.
func (s *session) converse(ctx context.Context, conv chat.Conversation) (chat.Conversation, *engine.Result, error) {
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
		over := round > s.tools.rounds
		results, err := s.results(ctx, res.ToolCalls, over)
		conv.Messages = append(conv.Messages, results...)
		if err != nil {
			return conv, res, err
		}
		if over {
			fmt.Fprintf(s.stderr, "note: the answer stops after %d rounds of calls (--tool-rounds)\n", s.tools.rounds)
			return conv, res, nil
		}
	}
}

// answerMessage is an answer as a message; ok is false for one that says nothing.
func answerMessage(res *engine.Result) (m chat.Message, ok bool) {
	if res == nil || res.Text == "" && res.Reasoning == "" && len(res.ToolCalls) == 0 {
		return m, false
	}
	m = textMessage(chat.Assistant, nil, res.Text)
	m.Reasoning, m.ToolCalls = res.Reasoning, res.ToolCalls
	return m, true
}

// carriesOut reports whether somebody carries out calls: the command, or the
// person in a chat.
func (s *session) carriesOut() bool { return s.tools.exec != "" || s.chatting }

// results has a message for each call. After an interruption, and of calls that
// are too many, it says that there is no result: a call without one would be an
// odd conversation.
func (s *session) results(ctx context.Context, calls []chat.ToolCall, tooMany bool) ([]chat.Message, error) {
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
		m := textMessage(chat.ToolRole, nil, text)
		m.ToolCallID, m.Name = call.ID, call.Name
		messages = append(messages, m)
	}
	return messages, failed
}

// carryOut has one call carried out, if the person allows it.
func (s *session) carryOut(ctx context.Context, call chat.ToolCall) (string, error) {
	name := oneLine(call.Name)
	if s.tools.exec == "" {
		return s.asked(ctx, fmt.Sprintf("result of %s: ", name))
	}
	fmt.Fprintf(s.stderr, "call: %s %s\n", name, compact(call.Arguments))
	if !s.tools.yes && !s.allowed[call.Name] {
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
	text, err := s.tools.run(ctx, call)
	if err == nil && (s.verbose || isTerminal(s.stderr)) {
		dim(s.stderr, fmt.Sprintf("result: %.400s", oneLine(text)))
	}
	return text, err
}

// asked asks the person. That they leave or press ctrl-C stops the answer.
func (s *session) asked(ctx context.Context, question string) (string, error) {
	answer, err := s.lines.ask(ctx, question)
	if err != nil && !errors.Is(err, errInterrupted) {
		fmt.Fprintln(s.stderr) // the question's line
		err = fmt.Errorf("%w (%w)", errInterrupted, err)
	}
	return answer, err
}
