package runcmd

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
)

// readInput completes the request: with the prompt of the command line and
// standard input, or with the file of messages.
func (o *options) readInput() error {
	if o.messages != "" {
		return o.readMessages()
	}
	text, err := files.ReadPrompt(o.prompt, o.Stdin, o.Stderr, o.Request.Raw)
	if err != nil {
		return err
	}
	if text == "" && len(o.Attached) == 0 {
		return usage.Errorf("no prompt, neither as argument nor by standard input; a chat needs a terminal to read from and to write to")
	}
	if o.Request.Raw {
		o.Request.Prompt = text
		return nil
	}
	conv := &o.Request.Conversation
	conv.Messages = append(conv.Messages, conversation.TextMessage(chat.User, o.Attached, text))
	return nil
}

// readMessages reads the conversation, and what else is in a request.
func (o *options) readMessages() error {
	name, data, err := files.Read(o.messages, o.Stdin)
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
	if tools := o.Request.Conversation.Tools; tools != nil {
		conv.Tools = tools // --tools comes before those of the file
	}
	o.Request.Conversation = conv
	if o.messages != "-" {
		dir := filepath.Dir(o.messages)
		o.Request.Load, o.Request.Local = engine.LoadLocal(dir), engine.LocalPaths(dir)
	}
	o.messagesName = name
	return nil
}

// blame names the file of messages in an error about what is in it.
func (o *options) blame(err error) error {
	var bad *engine.RequestError
	if o.messagesName != "" && errors.As(err, &bad) {
		return fmt.Errorf("%s: %w", o.messagesName, err)
	}
	return err
}
