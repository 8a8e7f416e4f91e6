package server

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/inkling-go/inkling/internal/engine"
)

// nullableText is text, null or, as its zero value, no member at all.
type nullableText struct {
	kind textKind
	text string
}

type textKind int

const (
	absent textKind = iota
	isNull
	isText
)

var nullText = nullableText{kind: isNull}

func text(s string) nullableText { return nullableText{isText, s} }

// MarshalJSON writes the text or null.
func (t nullableText) MarshalJSON() ([]byte, error) {
	if t.kind != isText {
		return []byte("null"), nil
	}
	return marshalText(t.text)
}

// marshalText is a JSON string; json.Marshal would write "<" as \u003c.
func marshalText(s string) ([]byte, error) {
	data, err := encodeJSON(s)
	return data[:max(len(data)-1, 0)], err
}

// UnmarshalJSON is MarshalJSON's inverse.
func (t *nullableText) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*t = nullText
		return nil
	}
	t.kind = isText
	return json.Unmarshal(data, &t.text)
}

// leastLogprob stands for tokens that cannot be, as in OpenAI's answers: JSON has
// no infinity.
const leastLogprob = -9999.0

// logprobsOf lists tokens with their log-probabilities.
func logprobsOf(tokens []engine.Token) *chatLogprobs {
	l := &chatLogprobs{Content: []tokenLogprobJSON{}}
	for _, t := range tokens {
		j := tokenLogprobJSON{topLogprobJSON: logprobJSON(t.Piece, t.Logprob), Top: []topLogprobJSON{}}
		for _, alt := range t.Top {
			j.Top = append(j.Top, logprobJSON(alt.Piece, alt.Logprob))
		}
		l.Content = append(l.Content, j)
	}
	return l
}

func logprobJSON(piece []byte, logprob float32) topLogprobJSON {
	j := topLogprobJSON{Token: spell(piece), Logprob: finite(logprob), Bytes: make([]int, len(piece))}
	for i, b := range piece {
		j.Bytes[i] = int(b)
	}
	return j
}

func finite(logprob float32) float64 {
	if f := float64(logprob); f > leastLogprob && !math.IsNaN(f) {
		return f
	}
	return leastLogprob
}

// spell writes a token that is a part of a character as OpenAI does, byte by byte:
// JSON strings hold whole characters only.
func spell(piece []byte) string {
	if utf8.Valid(piece) {
		return string(piece)
	}
	var b strings.Builder
	for len(piece) > 0 {
		r, n := utf8.DecodeRune(piece)
		if r == utf8.RuneError && n <= 1 {
			fmt.Fprintf(&b, `\x%02x`, piece[0])
		} else {
			b.Write(piece[:n])
		}
		piece = piece[n:]
	}
	return b.String()
}
