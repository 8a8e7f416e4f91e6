package inkling

import (
	"fmt"
	"slices"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/token"
)

// preName is tokenizer.ggml.pre: the split pattern of the o200k family with
// combining marks among the letters.
const preName = "inkling"

// endOfTurn ends the model's turn; it is the one token that stops generation.
const endOfTurn = "<|content_model_end_sampling|>"

// tokenizerKeys returns the vocabulary, padded to the rows of the embedding, the
// chat template, and the placeholders of media. Special tokens are found by their
// strings: vocabularies number them differently.
func (p *planner) tokenizerKeys() ([]convert.KV, error) {
	path := p.Src.Path("tokenizer.json")
	v, err := token.LoadTokenizerJSON(path)
	if err != nil {
		return nil, err
	}
	if v.Pre() != preName {
		return nil, &convert.UnsupportedError{Path: path, Msg: "the pattern that splits text is not that of the Inkling family"}
	}
	if size := p.c.text.vocabSize; int64(v.N()) > size {
		return nil, &convert.FormatError{
			Path: path, Off: -1,
			Msg: fmt.Sprintf("%d tokens, but vocab_size is %d", v.N(), size),
		}
	}
	if v, err = v.Pad(int(p.c.text.vocabSize)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	eos, ok := v.ID(endOfTurn)
	if !ok {
		return nil, &convert.UnsupportedError{Path: path, Msg: "no token " + endOfTurn}
	}
	if len(p.c.eosIDs) > 0 && !slices.Contains(p.c.eosIDs, int64(eos)) {
		p.Notef("eos_token_id %v in config.json is not used: the id of %s is %d", p.c.eosIDs, endOfTurn, eos)
	}
	kv := []convert.KV{
		{Key: token.KeyModel, Value: token.ModelGPT2},
		{Key: token.KeyPre, Value: preName},
		{Key: token.KeyTokens, Value: v.Tokens()},
		{Key: token.KeyTypes, Value: v.Types()},
		{Key: token.KeyMerges, Value: v.Merges()},
		{Key: token.KeyEOS, Value: uint32(eos)},
		{Key: token.KeyBOS, Value: uint32(eos)}, // the model has none; a reader's default must not show up
		{Key: "tokenizer.ggml.add_bos_token", Value: false},
	}
	template, err := p.Src.ChatTemplate()
	if err != nil {
		return nil, err
	}
	if template != "" {
		kv = append(kv, convert.KV{Key: "tokenizer.chat_template", Value: template})
	}
	slots, err := p.mediaSlots(path, v)
	return append(kv, slots...), err
}

// mediaSlots returns the keys with the ids of the tokens that stand where a row of
// a tower goes. The config and the tokenizer must agree on them.
func (p *planner) mediaSlots(path string, v *token.Vocab) ([]convert.KV, error) {
	var kv []convert.KV
	for _, slot := range []struct {
		key, name, str string
		id             int64
		used           bool
	}{
		{"inkling.image_token_id", "image_token_id", p.processor.imageToken, p.c.imageID, p.c.vision != nil},
		{"inkling.audio_token_id", "audio_token_id", p.processor.audioToken, p.c.audioID, p.c.audio != nil},
	} {
		id, ok := v.ID(slot.str)
		switch {
		case !slot.used:
			continue
		case !ok:
			return nil, &convert.FormatError{
				Path: path, Off: -1,
				Msg: fmt.Sprintf("no token %s, the placeholder of %s", slot.str, slot.name),
			}
		case slot.id >= 0 && slot.id != int64(id):
			return nil, &convert.FormatError{
				Path: p.Src.Config.File(), Off: -1,
				Msg: fmt.Sprintf("%s is %d, but the tokenizer's %s is %d", slot.name, slot.id, slot.str, id),
			}
		}
		kv = append(kv, convert.KV{Key: slot.key, Value: uint32(id)})
	}
	return kv, nil
}
