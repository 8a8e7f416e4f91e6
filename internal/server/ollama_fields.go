package server

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"

	"github.com/inkling-go/inkling/internal/chat"
)

// ollamaFormat is the form of the answer: "json", a schema, or nothing.
type ollamaFormat struct{ format }

func (f *ollamaFormat) decode(d *decoder, tok json.Token, path string) error {
	switch tok {
	case "":
		return nil
	case "json":
		f.format = format{Kind: formatJSON, Param: path}
		return nil
	case json.Delim('{'):
		schema, err := d.raw(tok)
		f.format = format{Kind: formatSchema, Schema: schema, Param: path}
		return err
	}
	return invalid(path, `want "json" or a JSON schema`)
}

// ollamaThink is whether and how much to think: a reasoning effort.
type ollamaThink struct{ effort string }

func (t *ollamaThink) decode(_ *decoder, tok json.Token, path string) error {
	switch tok {
	case true:
		return nil // as much as the model does by itself
	case false:
		t.effort = "none"
		return nil
	case "low", "medium", "high", "max":
		t.effort = tok.(string)
		return nil
	}
	return invalid(path, `want true, false, "low", "medium", "high" or "max"`)
}

// ollamaMedia are pictures or sounds in base64, which their bytes tell apart:
// Ollama has one list for both.
type ollamaMedia []chat.Part

func (m *ollamaMedia) decode(d *decoder, tok json.Token, path string) error {
	return d.array(tok, path, func(path string, tok json.Token) error {
		text, ok := tok.(string)
		if !ok || text == "" {
			return invalid(path, "is %s, want base64", typeName(tok))
		}
		_, payload, isURL := strings.Cut(text, ",")
		if !strings.HasPrefix(text, "data:") || !isURL {
			payload = text
		}
		// Enough for the signatures of all types: http.DetectContentType reads 512 bytes.
		head, err := decodeBase64(payload[:min(len(payload), 1024)])
		if err != nil {
			return invalid(path, "%w", err)
		}
		kind, typ := mediaKind(head)
		*m = append(*m, chat.Part{Kind: kind, Source: dataURL(typ, text), Field: path})
		return nil
	})
}

// mediaKind tells pictures, sounds and clips by their first bytes. What is not
// known is taken for a picture, which the decoder names the fault of.
func mediaKind(head []byte) (chat.Kind, string) {
	typ := http.DetectContentType(head)
	switch kind, _, _ := strings.Cut(typ, "/"); {
	case kind == "audio", typ == "application/ogg", strings.HasPrefix(string(head), "fLaC"):
		return chat.Audio, typ
	case kind == "video":
		return chat.Video, typ
	}
	return chat.Image, typ
}

// turn checks what both routes have and puts it into no protocol's words.
func (c *ollamaCommon) turn() (*turn, error) {
	t := &turn{KeepAlive: c.KeepAlive.d, Effort: c.Think.effort, Format: c.Format.format, ParallelCalls: true}
	tools := chatRequest{Tools: c.Tools, Logprobs: c.Logprobs, TopLogprobs: c.TopLogprobs}
	if err := tools.setTools(t); err != nil {
		return nil, err
	}
	if err := tools.setLogprobs(t); err != nil {
		return nil, err
	}
	if err := c.Options.set(t); err != nil {
		var bad *Error
		if errors.As(err, &bad) && bad.Param != "" {
			bad.Param = "options." + bad.Param
		}
		return nil, err
	}
	t.Model = c.Model
	return t, nil
}

// set puts the options into the turn.
func (o *ollamaOptions) set(t *turn) error {
	if err := o.refuse(); err != nil {
		return err
	}
	if o.Seed != nil && *o.Seed < 0 { // a new one each time
		o.Seed = nil
	}
	s := samplingFields{
		Temperature: o.Temperature, TopP: o.TopP, TopK: o.TopK, MinP: o.MinP, RepeatPenalty: o.RepeatPenalty,
		PresencePenalty: o.PresencePenalty, FrequencyPenalty: o.FrequencyPenalty, Seed: o.Seed,
	}
	if err := s.set(t); err != nil {
		return err
	}
	if n := o.RepeatLastN; n != nil && (*n < -1 || *n > math.MaxInt32) {
		return invalid("repeat_last_n", "is %d, want -1 (all), 0 (none) or more", *n)
	}
	t.Sampling.RepeatLastN = o.RepeatLastN
	if n := o.NumPredict; n != nil && *n > 0 {
		t.MaxTokens = *n
	}
	return (&outputFields{Stop: o.Stop}).set(t)
}

// refuse names samplers that are not here.
func (o *ollamaOptions) refuse() error {
	switch {
	case o.TypicalP != nil && *o.TypicalP != 1:
		return unsupported("typical_p", "is %g; there is no typical sampling here, top_p and min_p there are", *o.TypicalP)
	case o.TFSZ != nil && *o.TFSZ != 1:
		return unsupported("tfs_z", "is %g; there is no tail-free sampling here, top_p and min_p there are", *o.TFSZ)
	case o.Mirostat != nil && *o.Mirostat != 0:
		return unsupported("mirostat", "is %d; there is no Mirostat here, top_p and min_p there are", *o.Mirostat)
	}
	return nil
}

// objectOf is the arguments of a call as an object, which some protocols want.
// A model that writes another value gets it back as a member.
func objectOf(args json.RawMessage) json.RawMessage {
	if len(args) > 0 && args[0] == '{' {
		return args
	}
	if len(args) == 0 {
		return json.RawMessage("{}")
	}
	return json.RawMessage(`{"arguments":` + string(args) + `}`)
}
