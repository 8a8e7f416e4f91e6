package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/inkling-go/inkling/internal/engine"
)

// completionsRequest is the body of /v1/completions.
type completionsRequest struct {
	samplingFields
	outputFields

	Prompt   promptsField    `json:"prompt"`
	Echo     bool            `json:"echo"`
	Logprobs *int            `json:"logprobs"`
	BestOf   *int            `json:"best_of"`
	Grammar  *string         `json:"grammar"` // of llama.cpp's server: GBNF
	Suffix   json.RawMessage `json:"suffix"`  // refused by name
}

// prompt is a text, or token ids of the model's own vocabulary.
type prompt struct {
	text string
	ids  []int32
}

// promptsField is a text, a list of texts, a list of ids or a list of lists of ids.
type promptsField []prompt

func (p *promptsField) decode(d *decoder, tok json.Token, path string) error {
	if s, ok := tok.(string); ok {
		*p = promptsField{{text: s}}
		return nil
	}
	var ids []int32 // of a list of ids
	err := d.array(tok, path, func(path string, tok json.Token) error {
		switch t := tok.(type) {
		case string:
			*p = append(*p, prompt{text: t})
			return nil
		case json.Number:
			ids = append(ids, 0)
			return number(t, path, reflect.ValueOf(&ids[len(ids)-1]).Elem())
		}
		var list []int32
		err := d.value(tok, path, reflect.ValueOf(&list).Elem())
		*p = append(*p, prompt{ids: list})
		return err
	})
	if err == nil && ids != nil {
		if len(*p) > 0 {
			return invalid(path, "has ids and other prompts side by side")
		}
		*p = promptsField{{ids: ids}}
	}
	return err
}

// completionsResponse is an answer, or a piece of one.
type completionsResponse struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	Created           int64              `json:"created"`
	Model             string             `json:"model"`
	SystemFingerprint string             `json:"system_fingerprint"`
	Choices           []completionChoice `json:"choices"`
	Usage             *usageField        `json:"usage,omitempty"`
}

type completionChoice struct {
	Text         string              `json:"text"`
	Index        int                 `json:"index"`
	Logprobs     *completionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
}

// completionLogprobs are tokens with their log-probabilities in the older shape.
type completionLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters
}

// Limits of /v1/completions, and what it generates if the request does not say.
const (
	maxPrompts           = 64
	maxCompletionLogprob = 5
	defaultCompletion    = 16 // tokens, as OpenAI has it
)

// completions is POST /v1/completions. The prompt is taken as it is, without the
// chat template; special tokens in it count.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) error {
	var req completionsRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	turns, err := req.turns()
	if err != nil {
		return err
	}
	id, err := s.openAIIdentity("cmpl-", req.Model)
	if err != nil {
		return err
	}
	c := &completion{id: id, req: &req, n: max(turns[0].N, 1)}
	if req.Stream {
		c.out = newStream(w, typeSSE)
	}
	var all usage
	for i, t := range turns {
		c.begin(i)
		answers, err := s.generate(r.Context(), t, c.event)
		if err != nil && c.out != nil {
			return c.out.fail(openAI, err)
		}
		if err != nil {
			return err
		}
		all.add(usageOf(answers))
	}
	return c.end(w, all)
}

func (u *usage) add(v usage) {
	u.Prompt += v.Prompt
	u.Cached += v.Cached
	u.Generated += v.Generated
	u.Reasoning += v.Reasoning
}

// turns checks the request and returns a turn for each prompt.
func (r *completionsRequest) turns() ([]*turn, error) {
	switch {
	case len(r.Suffix) > 0:
		return nil, unsupported("suffix", "the models do not fill in")
	case len(r.Prompt) == 0 || len(r.Prompt) > maxPrompts:
		return nil, invalid("prompt", "has %d texts, want 1 to %d", len(r.Prompt), maxPrompts)
	case r.Echo && r.Logprobs != nil:
		return nil, unsupported("echo", "together with logprobs: the log-probabilities of prompts are not kept")
	case r.BestOf != nil && (r.N == nil && *r.BestOf != 1 || r.N != nil && *r.BestOf != *r.N):
		return nil, unsupported("best_of", "is %d, want the same as n", *r.BestOf)
	case r.Logprobs != nil && (*r.Logprobs < 0 || *r.Logprobs > maxCompletionLogprob):
		return nil, invalid("logprobs", "is %d, want 0 to %d", *r.Logprobs, maxCompletionLogprob)
	}
	base := turn{Raw: true, MaxTokens: defaultCompletion, Logprobs: r.Logprobs != nil}
	if base.Logprobs {
		base.TopLogprobs = *r.Logprobs
	}
	if r.Grammar != nil {
		base.Format = format{Kind: formatGBNF, Text: *r.Grammar, Param: "grammar"}
	}
	if err := r.outputFields.set(&base); err != nil {
		return nil, err
	}
	if err := r.samplingFields.set(&base); err != nil {
		return nil, err
	}
	var turns []*turn
	for i, p := range r.Prompt {
		if p.text == "" && len(p.ids) == 0 {
			return nil, invalid(fmt.Sprintf("prompt[%d]", i), "is empty")
		}
		if r.Echo && p.ids != nil {
			return nil, unsupported("echo", "of a prompt that is token ids")
		}
		t := base
		t.Prompt, t.PromptIDs = p.text, p.ids
		turns = append(turns, &t)
	}
	return turns, nil
}

// completion collects or streams the answers to one request.
type completion struct {
	id  *identity
	req *completionsRequest
	n   int     // answers to each prompt
	out *stream // nil: not streamed

	first   int   // index of the prompt's first answer
	offsets []int // of the texts so far, in characters
	choices []completionChoice
}

// begin goes to the next prompt.
func (c *completion) begin(prompt int) {
	c.first = prompt * c.n
	c.offsets = make([]int, c.n)
	if c.out == nil {
		for i := range c.n {
			c.choices = append(c.choices, completionChoice{Index: c.first + i})
		}
	}
}

// event takes what happens to an answer. All text is the answer's, thought or not:
// that is what the model says after the prompt.
func (c *completion) event(e event) error {
	piece := completionChoice{Index: c.first + e.Choice, Text: e.Text}
	switch e.Kind {
	case started:
		if !c.req.Echo {
			return nil
		}
		piece.Text = c.req.Prompt[c.first/c.n].text
	case toolCallStart, toolCallEnd:
		return nil
	case finished:
		piece.FinishReason = &e.Answer.FinishReason
		if e.Answer.FinishReason == engine.FinishToolCalls {
			stop := engine.FinishStop
			piece.FinishReason = &stop
		}
	}
	if c.req.Logprobs != nil && len(e.Tokens) > 0 {
		piece.Logprobs = legacyLogprobs(e.Tokens, c.offsets[e.Choice])
	}
	c.offsets[e.Choice] += len([]rune(piece.Text))
	if c.out == nil {
		c.choices[piece.Index].add(piece)
		return nil
	}
	chunk := c.response()
	chunk.Choices = append(chunk.Choices, piece)
	return c.out.data(chunk)
}

// add appends a piece.
func (c *completionChoice) add(p completionChoice) {
	c.Text += p.Text
	c.FinishReason = p.FinishReason
	if p.Logprobs == nil {
		return
	}
	if c.Logprobs == nil {
		c.Logprobs = p.Logprobs
		return
	}
	c.Logprobs.Tokens = slices.Concat(c.Logprobs.Tokens, p.Logprobs.Tokens)
	c.Logprobs.TokenLogprobs = slices.Concat(c.Logprobs.TokenLogprobs, p.Logprobs.TokenLogprobs)
	c.Logprobs.TopLogprobs = slices.Concat(c.Logprobs.TopLogprobs, p.Logprobs.TopLogprobs)
	c.Logprobs.TextOffset = slices.Concat(c.Logprobs.TextOffset, p.Logprobs.TextOffset)
}

func (c *completion) response() *completionsResponse {
	return &completionsResponse{
		ID: c.id.id, Object: "text_completion", Created: c.id.created, Model: c.id.model, SystemFingerprint: c.id.fingerprint, Choices: []completionChoice{},
	}
}

// end answers, or ends the stream.
func (c *completion) end(w http.ResponseWriter, u usage) error {
	resp := c.response()
	resp.Usage = u.openAI()
	if c.out == nil {
		resp.Choices = c.choices
		writeJSON(w, http.StatusOK, resp)
		return nil
	}
	if c.req.StreamOptions.IncludeUsage {
		if err := c.out.data(resp); err != nil {
			return err
		}
	}
	return c.out.write([]byte(endOfStream))
}

// legacyLogprobs lists tokens in the older shape. offset is where their text
// begins.
func legacyLogprobs(tokens []engine.Token, offset int) *completionLogprobs {
	l := &completionLogprobs{}
	for _, t := range tokens {
		top := map[string]float64{}
		for _, alt := range t.Top {
			top[legacySpell(alt.Piece)] = finite(alt.Logprob)
		}
		l.Tokens = append(l.Tokens, legacySpell(t.Piece))
		l.TokenLogprobs = append(l.TokenLogprobs, finite(t.Logprob))
		l.TopLogprobs = append(l.TopLogprobs, top)
		l.TextOffset = append(l.TextOffset, offset)
		offset += len([]rune(string(t.Piece)))
	}
	return l
}

// legacySpell marks tokens that are a part of a character, as OpenAI does.
func legacySpell(piece []byte) string {
	s := spell(piece)
	if s != string(piece) {
		return "bytes:" + s
	}
	return s
}
