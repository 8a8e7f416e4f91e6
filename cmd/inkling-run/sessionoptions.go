package main

import (
	"io"
	"os"
	"slices"

	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// sessionOptions say what a session loads, how it asks and what it shows.
type sessionOptions struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	model    string      // GGUF file, checkpoint folder, or name of a stored model
	attached []chat.Part // media of the first message

	stored *store.Model           // what the model's name stands for, set by openSession; nil for a path
	given  func(flag string) bool // whether an option is on the command line

	engine   engine.Options // Model is set by openSession
	request  engine.Request // what all requests have in common; the conversation is its beginning
	sampling func(engine.Sampling) engine.Sampling

	tools toolOptions

	json         bool // the result is printed as an object, not the answer as it comes
	showSpecial  bool // special tokens are printed
	hideThinking bool // reasoning is not
	plain        bool // without Markdown
	noHistory    bool // nothing that is typed is kept
	verbose      bool // speeds and memory are shown, a terminal or not
	quiet        bool // nothing but answers
}

// media is the first medium that the model is going to be given, if any.
func (o *sessionOptions) media() (chat.Part, bool) {
	parts := slices.Clone(o.attached)
	for _, m := range o.request.Conversation.Messages {
		parts = append(parts, m.Content...)
	}
	i := slices.IndexFunc(parts, func(p chat.Part) bool { return p.Kind != chat.Text })
	if i < 0 {
		return chat.Part{}, false
	}
	return parts[i], true
}

// canAsk reports whether there is a person to ask.
func (o *sessionOptions) canAsk() bool {
	return isTerminal(o.stdin) && (isTerminal(o.stdout) || isTerminal(o.stderr))
}

// newLines reads from the person at the terminal.
func (o *sessionOptions) newLines() *lineReader {
	out := o.stdout
	if !isTerminal(out) {
		out = o.stderr
	}
	return newLineReader(o.stdin.(*os.File), out.(*os.File), &chatHistory{}) // canAsk has seen that they are files
}
