package session

import (
	"io"
	"os"
	"slices"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// Options say what a session loads, how it asks and what it shows.
type Options struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	Model    string      // GGUF file, checkpoint folder, or name of a stored model
	Attached []chat.Part // media of the first message

	Stored *store.Model           // what the model's name stands for, set by Open; nil for a path
	Given  func(flag string) bool // whether an option is on the command line

	EngineOptions engine.Options // Model is set by Open
	Request       engine.Request // what all requests have in common; the conversation is its beginning
	Sampling      func(engine.Sampling) engine.Sampling

	Tools ToolOptions

	JSON         bool // the result is printed as an object, not the answer as it comes
	ShowSpecial  bool // special tokens are printed
	HideThinking bool // reasoning is not
	Plain        bool // without Markdown
	NoHistory    bool // nothing that is typed is kept
	Verbose      bool // speeds and memory are shown, a terminal or not
	Quiet        bool // nothing but answers
}

// media is the first medium that the model is going to be given, if any.
func (o *Options) media() (chat.Part, bool) {
	parts := slices.Clone(o.Attached)
	for _, m := range o.Request.Conversation.Messages {
		parts = append(parts, m.Content...)
	}
	i := slices.IndexFunc(parts, func(p chat.Part) bool { return p.Kind != chat.Text })
	if i < 0 {
		return chat.Part{}, false
	}
	return parts[i], true
}

// CanAsk reports whether there is a person to ask.
func (o *Options) CanAsk() bool {
	return terminal.Is(o.Stdin) && (terminal.Is(o.Stdout) || terminal.Is(o.Stderr))
}

// newLines reads from the person at the terminal.
func (o *Options) newLines() *terminal.LineReader {
	out := o.Stdout
	if !terminal.Is(out) {
		out = o.Stderr
	}
	return terminal.NewLineReader(o.Stdin.(*os.File), out.(*os.File), &terminal.History{}) // CanAsk has seen that they are files
}
