package grammar

import (
	"errors"
	"fmt"
)

// ErrUnsatisfiable is wrapped when no finite text belongs to the grammar.
var ErrUnsatisfiable = errors.New("no text can satisfy it")

// ErrTooLarge is wrapped when a grammar exceeds a limit of this package.
var ErrTooLarge = errors.New("too large")

// UnsupportedError says which part of a valid schema, regular expression or
// grammar this package does not enforce.
type UnsupportedError struct {
	Keyword string // the keyword or construct, such as "patternProperties" or "lookahead"
	Path    string // where: a JSON pointer into the schema, or the rule's name; may be empty
	Reason  string // what could be done instead; may be empty
}

// Error names the keyword and its place.
func (e *UnsupportedError) Error() string {
	s := fmt.Sprintf("grammar: %q is not supported", e.Keyword)
	if e.Path != "" {
		s += " at " + e.Path
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// SyntaxError says that a schema, regular expression or grammar is malformed.
type SyntaxError struct {
	Input  string // "schema", "regex" or "gbnf"
	Where  string // a JSON pointer, or line and column; may be empty
	Reason string
}

// Error names the input, the place and the reason.
func (e *SyntaxError) Error() string {
	if e.Where == "" {
		return fmt.Sprintf("grammar: malformed %s: %s", e.Input, e.Reason)
	}
	return fmt.Sprintf("grammar: malformed %s at %s: %s", e.Input, e.Where, e.Reason)
}
