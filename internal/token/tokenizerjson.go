package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxTokenizerBytes bounds a tokenizer.json; those of 200,000 tokens take about 30 MB.
const maxTokenizerBytes = 1 << 28

// LoadTokenizerJSON reads the vocabulary of a tokenizer.json and, if one lies beside it, of the tokenizer_config.json: that file
// names the end-of-sequence token and may add special tokens that the first one lacks.
func LoadTokenizerJSON(path string) (*Vocab, error) {
	tokenizer, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	config, err := readBounded(filepath.Join(filepath.Dir(path), "tokenizer_config.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return parseTokenizerJSON(path, tokenizer, config)
}

func readBounded(path string) ([]byte, error) {
	// Before opening: a pipe would wait for its other end.
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, formatErrorf(path, "not a regular file")
	} else if err == nil && st.Size() > maxTokenizerBytes {
		return nil, formatErrorf(path, "larger than %d bytes", maxTokenizerBytes)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenizerBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTokenizerBytes {
		return nil, formatErrorf(path, "larger than %d bytes", maxTokenizerBytes)
	}
	return data, nil
}

// ParseTokenizerJSON builds a vocabulary from the content of a tokenizer.json and of a tokenizer_config.json, which may be nil.
func ParseTokenizerJSON(tokenizer, config []byte) (*Vocab, error) {
	return parseTokenizerJSON("tokenizer.json", tokenizer, config)
}

// tokenizerFile is the part of tokenizer.json that decides ids. The post-processor (which only adds special tokens around a
// text), the decoder and the truncation and padding rules do not.
type tokenizerFile struct {
	Normalizer   *component   `json:"normalizer"`
	PreTokenizer *component   `json:"pre_tokenizer"`
	AddedTokens  []addedToken `json:"added_tokens"`
	Model        struct {
		Type         string           `json:"type"`
		Dropout      float64          `json:"dropout"`
		Prefix       string           `json:"continuing_subword_prefix"`
		Suffix       string           `json:"end_of_word_suffix"`
		ByteFallback bool             `json:"byte_fallback"`
		IgnoreMerges bool             `json:"ignore_merges"`
		Vocab        map[string]int32 `json:"vocab"`
		Merges       []mergeLine      `json:"merges"`
	} `json:"model"`
}

// component is a normalizer or a pre-tokenizer; which fields count depends on Type.
type component struct {
	Type          string      `json:"type"`
	Normalizers   []component `json:"normalizers"`
	PreTokenizers []component `json:"pretokenizers"`
	Pattern       struct {
		Regex *string `json:"Regex"`
	} `json:"pattern"`
	Behavior       string `json:"behavior"`
	Invert         bool   `json:"invert"`
	AddPrefixSpace bool   `json:"add_prefix_space"`
	UseRegex       *bool  `json:"use_regex"`
}

type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
}

// mergeLine is "left right". Newer files write the pair ["left", "right"].
type mergeLine string

func (m *mergeLine) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		var parts []string
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		if len(parts) != 2 {
			return fmt.Errorf("merge of %d parts, want 2", len(parts))
		}
		*m = mergeLine(parts[0] + " " + parts[1])
		return nil
	}
	return json.Unmarshal(data, (*string)(m))
}

func parseTokenizerJSON(name string, tokenizer, config []byte) (*Vocab, error) {
	var kind struct {
		Model struct {
			Type string `json:"type"`
		} `json:"model"`
	}
	if err := decodeFile(name, tokenizer, &kind); err != nil {
		return nil, err
	}
	// Other models spell their vocabulary in another way, so this comes before the rest is decoded.
	if kind.Model.Type != "BPE" && kind.Model.Type != "" {
		return nil, unsupportedf(name, "model type %q, want BPE", kind.Model.Type)
	}
	var f tokenizerFile
	if err := decodeFile(name, tokenizer, &f); err != nil {
		return nil, err
	}
	s := source{name: name, ignoreMerges: f.Model.IgnoreMerges, eos: -1, bos: -1}
	switch m := f.Model; {
	case m.Dropout != 0:
		return nil, unsupportedf(name, "model dropout %v", m.Dropout)
	case m.Prefix != "":
		return nil, unsupportedf(name, "model continuing_subword_prefix %q", m.Prefix)
	case m.Suffix != "":
		return nil, unsupportedf(name, "model end_of_word_suffix %q", m.Suffix)
	case m.ByteFallback:
		return nil, unsupportedf(name, "model byte_fallback")
	}
	if err := f.Normalizer.none(name); err != nil {
		return nil, err
	}
	var err error
	if s.patterns, err = f.PreTokenizer.patterns(name); err != nil {
		return nil, err
	}
	s.pre = preName(s.patterns, s.ignoreMerges)
	for _, m := range f.Model.Merges {
		s.merges = append(s.merges, string(m))
	}
	var c tokenizerConfig
	if config != nil {
		if err := decodeFile("tokenizer_config.json", config, &c); err != nil {
			return nil, err
		}
	}
	added, err := c.merge(f.AddedTokens)
	if err != nil {
		return nil, err
	}
	if err := s.number(f.Model.Vocab, added); err != nil {
		return nil, err
	}
	s.eos, s.bos = c.EOS.id(added), c.BOS.id(added)
	return newVocab(s)
}

// decodeFile is json.Unmarshal with errors that name the file and, for broken JSON, the offset.
func decodeFile(name string, data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return &FormatError{Name: name, Off: syntax.Offset, Msg: syntax.Error()}
	case errors.As(err, &kind):
		return &FormatError{Name: name, Off: kind.Offset, Msg: fmt.Sprintf("field %s holds %s", kind.Field, kind.Value)}
	}
	return formatErrorf(name, "%v", err)
}

// none reports an error if the normalizer changes text. A nil component is the absent one.
func (c *component) none(name string) error {
	if c == nil {
		return nil
	}
	if c.Type != "Sequence" {
		return unsupportedf(name, "normalizer %q", c.Type)
	}
	for i := range c.Normalizers {
		if err := c.Normalizers[i].none(name); err != nil {
			return err
		}
	}
	return nil
}

// patterns returns the split patterns of a pre-tokenizer: any number of isolating Splits, then ByteLevel.
func (c *component) patterns(name string) ([]string, error) {
	if c == nil {
		return nil, unsupportedf(name, "pre-tokenizer: none, want ByteLevel")
	}
	steps := []component{*c}
	if c.Type == "Sequence" {
		steps = c.PreTokenizers
	}
	var patterns []string
	for i, p := range steps {
		switch {
		case p.Type == "Split" && p.Pattern.Regex != nil && p.Behavior == "Isolated" && !p.Invert:
			patterns = append(patterns, *p.Pattern.Regex)
		case p.Type == "Split":
			return nil, unsupportedf(name, "pre-tokenizer Split that is not an isolating regular expression")
		case p.Type == "ByteLevel" && p.AddPrefixSpace:
			return nil, unsupportedf(name, "pre-tokenizer ByteLevel with add_prefix_space")
		case p.Type == "ByteLevel" && i == len(steps)-1:
			if p.UseRegex == nil || *p.UseRegex {
				patterns = append(patterns, patternGPT2)
			}
			return patterns, nil
		default:
			return nil, unsupportedf(name, "pre-tokenizer %q at place %d", p.Type, i)
		}
	}
	return nil, unsupportedf(name, "pre-tokenizer without ByteLevel at the end")
}

// number puts the tokens into the order of their ids and fills holes with Unused ones. Added tokens come over those of the
// model's vocabulary with the same string.
func (s *source) number(vocab map[string]int32, added []addedToken) error {
	n := 0
	for t, id := range vocab {
		if id < 0 || id >= maxTokens {
			return formatErrorf(s.name, "id %d of token %q", id, t)
		}
		n = max(n, int(id)+1)
	}
	for _, a := range added {
		if a.ID < 0 || a.ID >= maxTokens {
			return formatErrorf(s.name, "id %d of added token %q", a.ID, a.Content)
		}
		n = max(n, int(a.ID)+1)
	}
	s.tokens, s.types = make([]string, n), make([]Type, n)
	for t, id := range vocab {
		if s.types[id] != 0 {
			return formatErrorf(s.name, "tokens %q and %q have the id %d", min(t, s.tokens[id]), max(t, s.tokens[id]), id)
		}
		s.tokens[id], s.types[id] = t, Normal
	}
	for _, a := range added {
		if s.types[a.ID] != 0 && s.tokens[a.ID] != a.Content {
			return formatErrorf(s.name, "tokens %q and %q have the id %d", s.tokens[a.ID], a.Content, a.ID)
		}
		if id, ok := vocab[a.Content]; ok && id != a.ID {
			return formatErrorf(s.name, "token %q has the ids %d and %d", a.Content, id, a.ID)
		}
		if a.SingleWord || a.LStrip || a.RStrip {
			return unsupportedf(s.name, "single_word, lstrip or rstrip of added token %q", a.Content)
		}
		s.tokens[a.ID], s.types[a.ID] = a.Content, UserDefined
		if a.Special {
			s.types[a.ID] = Control
		}
	}
	for id, t := range s.types {
		if t == 0 {
			s.tokens[id], s.types[id] = padName(id), Unused
		}
	}
	return nil
}
