package store

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Modelfile says what a model is made of, as Ollama's file of that name does.
type Modelfile struct {
	// From are files, folders of GGUF files, names of the store or the hub, or
	// sha256:HEX of a blob that was put: one model, and its projector if that
	// does not lie beside it.
	From []From
	Dir  string // that relative paths count from; "": paths are not allowed

	// What is empty is the base model's, if From is one.
	Params   Params
	System   string
	Template string // Jinja
	Messages []Message
	License  []string
}

// From is one line FROM.
type From struct {
	Ref  string
	Name string // of the file, for a blob; empty: by what is in it
	Line int    // 0 if there is no Modelfile
}

// SyntaxError is what is wrong with a line of a Modelfile.
type SyntaxError struct {
	Line int // from 1
	Msg  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// ParseModelfile reads a Modelfile: lines of an instruction and its value, which
// may be put in "quotes" or """three of them""" and then has several lines. The
// closing ones are those at the end of a line; nothing is escaped. # begins a
// line of comment. A fault is a [SyntaxError].
func ParseModelfile(r io.Reader) (*Modelfile, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("more than %d bytes", maxManifest)
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	if !utf8.ValidString(text) {
		return nil, &SyntaxError{1, "the file is not UTF-8"}
	}
	p := &modelfileParser{rest: text, line: 1, file: new(Modelfile)}
	for p.rest != "" {
		if err := p.statement(); err != nil {
			return nil, &SyntaxError{p.at, err.Error()}
		}
	}
	if len(p.file.From) == 0 {
		return nil, &SyntaxError{p.line, "no FROM: it names the file, the folder or the model that this one is made of"}
	}
	return p.file, nil
}

type modelfileParser struct {
	rest string
	line int // where rest begins
	at   int // where the statement in work begins
	file *Modelfile
}

// word takes the next word of the line.
func (p *modelfileParser) word() string {
	p.rest = strings.TrimLeft(p.rest, " \t\r")
	n := strings.IndexAny(p.rest, " \t\r\n")
	if n < 0 {
		n = len(p.rest)
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	return w
}

// skip takes n bytes and counts their lines.
func (p *modelfileParser) skip(n int) string {
	s := p.rest[:n]
	p.line += strings.Count(s, "\n")
	p.rest = p.rest[n:]
	return s
}

// restOfLine takes what is left of the line, without the spaces around it.
func (p *modelfileParser) restOfLine() string {
	n := strings.IndexByte(p.rest, '\n') + 1
	if n == 0 {
		n = len(p.rest)
	}
	return strings.Trim(p.skip(n), " \t\r\n")
}

// closing are quotes that end a value.
var closing = map[string]*regexp.Regexp{
	`"""`: regexp.MustCompile(`"""[ \t\r]*(\n|$)`),
	`"`:   regexp.MustCompile(`"[ \t\r]*(\n|$)`),
}

// value takes the value of a statement.
func (p *modelfileParser) value() (string, error) {
	p.rest = strings.TrimLeft(p.rest, " \t\r")
	for _, quote := range []string{`"""`, `"`} {
		if !strings.HasPrefix(p.rest, quote) {
			continue
		}
		p.skip(len(quote))
		at := closing[quote].FindStringIndex(p.rest)
		if at == nil {
			return "", fmt.Errorf("the quotes %s that begin here are not closed at the end of a line", quote)
		}
		v := p.rest[:at[0]]
		p.skip(at[1])
		return v, nil
	}
	return p.restOfLine(), nil
}

// statement reads one line that is not empty, and the lines of its value.
func (p *modelfileParser) statement() error {
	p.at = p.line
	word := p.word()
	if word == "" || strings.HasPrefix(word, "#") {
		p.restOfLine()
		return nil
	}
	switch strings.ToUpper(word) {
	case "PARAMETER":
		name := strings.ToLower(p.word())
		if name == "" {
			return fmt.Errorf("PARAMETER without a name; these are known: %s", strings.Join(ParamNames(), ", "))
		}
		v, err := p.value()
		if err != nil {
			return err
		}
		return p.file.Params.Set(name, v)
	case "MESSAGE":
		role := strings.ToLower(p.word())
		v, err := p.value()
		if err != nil {
			return err
		}
		return p.message(role, v)
	}
	v, err := p.value()
	if err != nil {
		return err
	}
	return p.instruction(strings.ToUpper(word), v)
}

// maxFrom bounds the lines FROM, maxMessages those of the conversation.
const (
	maxFrom     = 8
	maxMessages = 1000
)

func (p *modelfileParser) message(role, text string) error {
	switch role {
	case "system", "user", "assistant":
	default:
		return fmt.Errorf("MESSAGE %q: want the role system, user or assistant, then the text", role)
	}
	if len(p.file.Messages) == maxMessages {
		return fmt.Errorf("more than %d times MESSAGE", maxMessages)
	}
	p.file.Messages = append(p.file.Messages, Message{role, text})
	return nil
}

func (p *modelfileParser) instruction(name, v string) error {
	f := p.file
	switch name {
	case "FROM":
		if v == "" {
			return fmt.Errorf("FROM without a file, a folder or a model")
		}
		if len(f.From) == maxFrom {
			return fmt.Errorf("more than %d times FROM", maxFrom)
		}
		f.From = append(f.From, From{Ref: v, Line: p.at})
	case "SYSTEM":
		f.System = v
	case "TEMPLATE":
		f.Template = v
		return CheckTemplate(v)
	case "LICENSE":
		f.License = append(f.License, v)
	case "ADAPTER":
		return fmt.Errorf("ADAPTER is not supported: merge the adapter into its checkpoint and import that")
	case "RENDERER", "PARSER":
		return fmt.Errorf("%s names a part of Ollama's program; here the model's file decides, or a Jinja TEMPLATE", name)
	case "REQUIRES":
		return fmt.Errorf("REQUIRES is a version of Ollama, which this is not")
	default:
		return fmt.Errorf("%q is no instruction: want FROM, PARAMETER, SYSTEM, TEMPLATE, MESSAGE or LICENSE", name)
	}
	return nil
}

// goTemplate matches what no Jinja template has between double braces: a field, a
// variable with a dollar sign, or a statement.
var goTemplate = regexp.MustCompile(`\{\{-?\s*(\.[A-Za-z]|\$|/\*|(if|range|with|define|template|block|else if)\s|(end|else)\s*-?\}\})`)

// CheckTemplate refuses a chat template in the language of Go, which Ollama's are
// written in.
func CheckTemplate(text string) error {
	if at := goTemplate.FindString(text); at != "" {
		return fmt.Errorf("TEMPLATE is in Ollama's Go template language (%q): want Jinja, as tokenizer.chat_template and Hugging Face have it; without TEMPLATE the model's own is used", at)
	}
	return nil
}
