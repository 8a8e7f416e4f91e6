package token

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// tokenizerConfig is the part of tokenizer_config.json that decides ids.
type tokenizerConfig struct {
	Added map[string]addedToken `json:"added_tokens_decoder"` // by id; the entries have no id of their own
	EOS   tokenName             `json:"eos_token"`
	BOS   tokenName             `json:"bos_token"`
	Class string                `json:"tokenizer_class"`
}

// tokenName is a token's string. Older files write an object with the string as "content".
type tokenName string

func (t *tokenName) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var a addedToken
		err := json.Unmarshal(data, &a)
		*t = tokenName(a.Content)
		return err
	}
	return json.Unmarshal(data, (*string)(t))
}

// id finds the token; -1 if the file names none or, as re-saved files do, one that the vocabulary lacks.
func (t tokenName) id(added []addedToken) int32 {
	for _, a := range added {
		if t != "" && a.Content == string(t) {
			return a.ID
		}
	}
	return -1
}

// merge returns the added tokens of tokenizer.json and those that only the config has.
func (c *tokenizerConfig) merge(added []addedToken) ([]addedToken, error) {
	const name = "tokenizer_config.json"
	have := make(map[int32]string, len(added))
	for _, a := range added {
		have[a.ID] = a.Content
	}
	added = slices.Clone(added)
	for _, key := range slices.Sorted(maps.Keys(c.Added)) {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return nil, formatErrorf(name, "added_tokens_decoder has the key %q, want an id", key)
		}
		a := c.Added[key]
		a.ID = int32(id)
		if content, ok := have[a.ID]; ok && content != a.Content {
			return nil, formatErrorf(name, "token %d is %q, in tokenizer.json it is %q", id, a.Content, content)
		} else if !ok {
			added = append(added, a)
		}
	}
	return added, nil
}
