package token

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// reservedTokens is how many ids after the ranks Kimi's own tokenizer class takes for special tokens. Those without a name are
// called <|reserved_token_ID|>.
// Source: moonshotai/Kimi-K2-Instruct, tokenization_kimi.py, num_reserved_special_tokens.
const reservedTokens = 256

// kimiClass is tokenizer_class of a checkpoint that brings that class along.
const kimiClass = "TikTokenTokenizer"

// LoadTiktoken reads a vocabulary of ranked byte strings, tiktoken.model, as Kimi's checkpoints have it. It splits text by Kimi's
// pattern: the file itself names none. The special tokens come from the tokenizer_config.json beside it and, where there is one, from
// tokenizer.json, whose merges are not read.
func LoadTiktoken(path string) (*Vocab, error) {
	ranks, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	var side [2][]byte
	for i, name := range []string{"tokenizer_config.json", "tokenizer.json"} {
		side[i], err = readBounded(filepath.Join(filepath.Dir(path), name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return parseTiktoken(path, ranks, side[0], side[1])
}

// ParseTiktoken builds a vocabulary from the content of a tiktoken.model, and of a tokenizer_config.json and a tokenizer.json, which may
// both be nil.
func ParseTiktoken(ranks, config, tokenizer []byte) (*Vocab, error) {
	return parseTiktoken("tiktoken.model", ranks, config, tokenizer)
}

func parseTiktoken(name string, ranks, config, tokenizer []byte) (*Vocab, error) {
	pieces, err := parseRanks(name, ranks)
	if err != nil {
		return nil, err
	}
	var f struct {
		AddedTokens []addedToken `json:"added_tokens"`
	}
	if tokenizer != nil {
		if err := decodeFile("tokenizer.json", tokenizer, &f); err != nil {
			return nil, err
		}
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
	if c.Class == kimiClass {
		added = nameReserved(added, len(pieces))
	}
	s := source{name: name, pre: "kimi-k2", patterns: []string{patternKimi}}
	vocab := make(map[string]int32, len(pieces))
	for id, p := range pieces {
		vocab[alphabet.spell(p)] = int32(id)
	}
	if err := s.number(vocab, added); err != nil {
		return nil, err
	}
	if s.merges, err = mergesOf(name, pieces); err != nil {
		return nil, err
	}
	s.eos, s.bos = c.EOS.id(added), c.BOS.id(added)
	return newVocab(s)
}

// parseRanks reads lines of a token in base64, a space and its rank. Ranks are ids, so they must be 0, 1, 2, …, in any order.
func parseRanks(name string, data []byte) ([]string, error) {
	var pieces []string
	seen := make(map[string]bool)
	type ranked struct {
		piece string
		rank  int
	}
	var lines []ranked
	for off := 0; off < len(data); {
		line, _, _ := bytes.Cut(data[off:], []byte("\n"))
		at := int64(off)
		off += len(line) + 1
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			continue
		}
		fail := func(msg string) error { return &FormatError{Name: name, Off: at, Msg: msg} }
		text, number, _ := strings.Cut(string(line), " ")
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) == 0 {
			return nil, fail("token is not base64")
		}
		rank, err := strconv.ParseUint(number, 10, 31)
		switch {
		case err != nil:
			return nil, fail("rank is not a number")
		case seen[string(raw)]:
			return nil, fail("token " + strconv.Quote(string(raw)) + " for the second time")
		case rank >= maxTokens:
			return nil, fail("rank " + number + " is too large")
		}
		seen[string(raw)] = true
		lines = append(lines, ranked{string(raw), int(rank)})
	}
	slices.SortFunc(lines, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	for i, l := range lines {
		if l.rank != i {
			return nil, formatErrorf(name, "%d tokens, but none or several with rank %d", len(lines), i)
		}
		pieces = append(pieces, l.piece)
	}
	return pieces, nil
}

// maxRanked bounds the bytes of a token in a file of ranks. The longest in use, runs of spaces, have some 128.
const maxRanked = 1024

// mergesOf returns the merges that make each token of several bytes: the two tokens left when its bytes are merged by the ranks below
// its own. Encoding by these merges and by the ranks is the same: when a token is the next to be made in a text, its bytes have been
// merged as far as the lower ranks go, whatever stands around them.
func mergesOf(name string, pieces []string) ([]string, error) {
	rank := make(map[string]int, len(pieces))
	var merges []string
	for id, p := range pieces {
		rank[p] = id
		if len(p) == 1 {
			continue
		}
		if len(p) > maxRanked {
			return nil, unsupportedf(name, "token %d of %d bytes, limit %d", id, len(p), maxRanked)
		}
		parts := mergeBelow(p, id, rank)
		if len(parts) != 2 {
			return nil, formatErrorf(name, "token %d %q is made of %d tokens with lower ranks, want 2", id, p, len(parts))
		}
		merges = append(merges, alphabet.spell(parts[0])+" "+alphabet.spell(parts[1]))
	}
	return merges, nil
}

// mergeBelow merges the bytes of s by the ranks below limit, the lowest first, the leftmost of equals.
func mergeBelow(s string, limit int, rank map[string]int) []string {
	parts := make([]string, 0, len(s))
	for i := range len(s) {
		parts = append(parts, s[i:i+1])
	}
	for len(parts) > 2 {
		at, best := -1, limit
		for i, left := range parts[:len(parts)-1] {
			if r, ok := rank[left+parts[i+1]]; ok && r < best {
				at, best = i, r
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
	return parts
}

// nameReserved adds the special tokens after the n ranks that have no name.
func nameReserved(added []addedToken, n int) []addedToken {
	have := make(map[int32]bool, len(added))
	for _, a := range added {
		have[a.ID] = true
	}
	for id := n; id < n+reservedTokens; id++ {
		if !have[int32(id)] {
			added = append(added, addedToken{ID: int32(id), Content: "<|reserved_token_" + strconv.Itoa(id) + "|>", Special: true})
		}
	}
	return added
}
