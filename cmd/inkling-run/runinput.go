package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// readInput completes the request: with the prompt of the command line and
// standard input, or with the file of messages.
func (o *runOptions) readInput() error {
	if o.messages != "" {
		return o.readMessages()
	}
	text, err := readPrompt(o.prompt, o.stdin, o.stderr, o.request.Raw)
	if err != nil {
		return err
	}
	if text == "" && len(o.attached) == 0 {
		return usagef("no prompt, neither as argument nor by standard input; a chat needs a terminal to read from and to write to")
	}
	if o.request.Raw {
		o.request.Prompt = text
		return nil
	}
	conv := &o.request.Conversation
	conv.Messages = append(conv.Messages, textMessage(chat.User, o.attached, text))
	return nil
}

// readMessages reads the conversation, and what else is in a request.
func (o *runOptions) readMessages() error {
	name, data, err := readInputFile(o.messages, o.stdin)
	if err != nil {
		return err
	}
	conv, err := chat.ParseMessages(data)
	if err == nil && len(conv.Messages) == 0 {
		err = errors.New("no messages")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := o.setFields(name, data); err != nil {
		return err
	}
	if tools := o.request.Conversation.Tools; tools != nil {
		conv.Tools = tools // --tools comes before those of the file
	}
	o.request.Conversation = conv
	if o.messages != "-" {
		dir := filepath.Dir(o.messages)
		o.request.Load, o.request.Local = engine.LoadLocal(dir), engine.LocalPaths(dir)
	}
	o.messagesName = name
	return nil
}

// blame names the file of messages in an error about what is in it.
func (o *runOptions) blame(err error) error {
	var bad *engine.RequestError
	if o.messagesName != "" && errors.As(err, &bad) {
		return fmt.Errorf("%s: %w", o.messagesName, err)
	}
	return err
}
