package kimik25

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/token"
)

// preName is tokenizer.ggml.pre: the split pattern that keeps Han characters apart.
const preName = "kimi-k2"

// Special tokens, found by their strings: vocabularies number them differently.
const (
	endOfTurn    = "<|im_end|>" // ends the model's turn, whatever config.json says
	mediaBegin   = "<|media_begin|>"
	mediaStart   = "<|media_start|>" // the same in Kimi-VL
	mediaContent = "<|media_content|>"
	mediaEnd     = "<|media_end|>"
	mediaPad     = "<|media_pad|>" // stands where a row of the tower goes
)

// tokenizer is what a plan needs to know of the vocabulary.
type tokenizer struct {
	kv       []convert.KV
	template string
}

// tokenizer returns the vocabulary, padded to the rows of the embedding, and the
// chat template.
func (p *planner) tokenizer() (tokenizer, error) {
	path, v, err := p.vocabulary()
	if err != nil {
		return tokenizer{}, err
	}
	eos, ok := v.ID(endOfTurn)
	if !ok {
		if eos, ok = v.EOS(); !ok {
			return tokenizer{}, &convert.UnsupportedError{Path: path, Msg: "no token " + endOfTurn + " and no eos_token"}
		}
	}
	if len(p.c.eosIDs) > 0 && !slices.Contains(p.c.eosIDs, int64(eos)) {
		p.Notef("eos_token_id %v in config.json is not used: the id of %s is %d", p.c.eosIDs, endOfTurn, eos)
	}
	kv := []convert.KV{
		{Key: token.KeyModel, Value: token.ModelGPT2},
		{Key: token.KeyPre, Value: v.Pre()},
		{Key: token.KeyTokens, Value: v.Tokens()},
		{Key: token.KeyTypes, Value: v.Types()},
		{Key: token.KeyMerges, Value: v.Merges()},
		{Key: token.KeyEOS, Value: uint32(eos)},
	}
	if bos, ok := v.BOS(); ok {
		kv = append(kv, convert.KV{Key: token.KeyBOS, Value: uint32(bos)})
	}
	kv = append(kv, convert.KV{Key: "tokenizer.ggml.add_bos_token", Value: false})
	t := tokenizer{}
	if t.template, err = p.Src.ChatTemplate(); err != nil {
		return tokenizer{}, err
	}
	if t.template != "" {
		kv = append(kv, convert.KV{Key: "tokenizer.chat_template", Value: t.template})
	}
	media, err := p.mediaKeys(path, v)
	t.kv = append(kv, media...)
	return t, err
}

// vocabulary reads tiktoken.model, as published, or tokenizer.json, and returns
// the path of the file that it found.
func (p *planner) vocabulary() (string, *token.Vocab, error) {
	path := p.Src.Path("tiktoken.model")
	v, err := token.LoadTiktoken(path)
	if errors.Is(err, os.ErrNotExist) {
		path = p.Src.Path("tokenizer.json")
		v, err = token.LoadTokenizerJSON(path)
	}
	if err != nil {
		return path, nil, err
	}
	if v.Pre() == "" || v.Pre() != preName && p.c.vision != nil {
		return path, nil, &convert.UnsupportedError{Path: path, Msg: "the pattern that splits text is not that of the Kimi family"}
	}
	if size := p.c.text.vocabSize; int64(v.N()) > size {
		return path, nil, &convert.FormatError{
			Path: path, Off: -1,
			Msg: fmt.Sprintf("%d tokens, but vocab_size is %d", v.N(), size),
		}
	}
	if v, err = v.Pad(int(p.c.text.vocabSize)); err != nil {
		return path, nil, fmt.Errorf("%s: %w", path, err)
	}
	return path, v, nil
}

// mediaKeys returns the key with the id of the token that stands where a row of
// the tower goes. The config and the tokenizer must agree on it.
func (p *planner) mediaKeys(path string, v *token.Vocab) ([]convert.KV, error) {
	if p.c.vision == nil {
		return nil, nil
	}
	broken := func(path, format string, args ...any) error {
		return &convert.FormatError{Path: path, Off: -1, Msg: fmt.Sprintf(format, args...)}
	}
	id, ok := v.ID(mediaPad)
	if !ok {
		return nil, broken(path, "no token %s, the placeholder of media", mediaPad)
	}
	if want := p.c.mediaID; want >= 0 && want != int64(id) {
		return nil, broken(p.Src.Config.File(),
			"media_placeholder_token_id is %d, but the tokenizer's %s is %d", want, mediaPad, id)
	}
	_, begin := v.ID(mediaBegin)
	_, start := v.ID(mediaStart)
	if !begin && !start {
		return nil, broken(path, "no token %s or %s, which opens media", mediaBegin, mediaStart)
	}
	for _, s := range []string{mediaContent, mediaEnd} {
		if _, ok := v.ID(s); !ok {
			return nil, broken(path, "no token %s", s)
		}
	}
	return []convert.KV{{Key: "kimi.media_token_id", Value: uint32(id)}}, nil
}
