// Package token turns text into token ids and back: byte-level BPE over the vocabularies of
// tokenizer.json and GGUF files.
//
// Plain text and control tokens never mix. Encode treats every byte of its input as text, so a user who
// writes "<|end_message|>" gets the tokens of those fifteen characters and never the control token. Prompts
// are lists of Segments, in which the caller says what is text and what is a control token or a medium.
package token

import "fmt"

// Type is the kind of a vocabulary entry; the numbers are those of the GGUF key tokenizer.ggml.token_type.
type Type int32

// Token types. Byte-level vocabularies use Normal, Control, UserDefined and Unused.
const (
	Normal      Type = 1 // text, spelled in the GPT-2 byte alphabet
	Unknown     Type = 2 // stands for unknown text; no byte-level vocabulary needs one
	Control     Type = 3 // marks structure; never part of the text
	UserDefined Type = 4 // added whole, shown as text, never made by merges
	Unused      Type = 5 // fills the vocabulary up to its padded size; must not be sampled
	Byte        Type = 6 // one raw byte of a SentencePiece vocabulary
)

// maxTokens bounds the vocabulary size read from a file. The largest vocabularies in use hold some 260,000.
const maxTokens = 1 << 22

// FormatError reports a tokenizer file or metadata that contradicts itself or cannot be parsed.
type FormatError struct {
	Name string // file, or metadata key
	Off  int64  // byte offset in the file, -1 when there is none
	Msg  string // what is wrong, lower case, no full stop
}

func (e *FormatError) Error() string {
	if e.Off < 0 {
		return fmt.Sprintf("%s: %s", e.Name, e.Msg)
	}
	return fmt.Sprintf("%s: offset %d: %s", e.Name, e.Off, e.Msg)
}

// UnsupportedError reports a sound tokenizer of a kind that this package does not implement.
type UnsupportedError struct {
	Name string // file, or metadata key
	Msg  string // which part is not supported, by its name in the file
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("%s: unsupported %s", e.Name, e.Msg) }

func formatErrorf(name, format string, args ...any) error {
	return &FormatError{Name: name, Off: -1, Msg: fmt.Sprintf(format, args...)}
}

func unsupportedf(name, format string, args ...any) error {
	return &UnsupportedError{Name: name, Msg: fmt.Sprintf(format, args...)}
}
