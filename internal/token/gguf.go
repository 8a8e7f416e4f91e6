package token

// Metadata is what FromGGUF reads from: the key-value part of a GGUF file. Errors name the file and the key.
type Metadata interface {
	Str(key string) (string, error)
	Strs(key string) ([]string, error)
	Ints(key string) ([]int64, error)
	UintOr(key string, def uint64) (uint64, error)
}

// GGUF keys of the tokenizer.
const (
	KeyModel  = "tokenizer.ggml.model"        // ModelGPT2
	KeyPre    = "tokenizer.ggml.pre"          // Vocab.Pre
	KeyTokens = "tokenizer.ggml.tokens"       // Vocab.Tokens
	KeyTypes  = "tokenizer.ggml.token_type"   // Vocab.Types
	KeyMerges = "tokenizer.ggml.merges"       // Vocab.Merges
	KeyEOS    = "tokenizer.ggml.eos_token_id" // uint32
	KeyBOS    = "tokenizer.ggml.bos_token_id" // uint32
)

// ModelGPT2 is the value of KeyModel for byte-level BPE.
const ModelGPT2 = "gpt2"

// FromGGUF builds the vocabulary that the metadata of a GGUF file describes.
func FromGGUF(kv Metadata) (*Vocab, error) {
	model, err := kv.Str(KeyModel)
	if err != nil {
		return nil, err
	}
	if model != ModelGPT2 {
		return nil, unsupportedf(KeyModel, "tokenizer model %q, want %q", model, ModelGPT2)
	}
	s := source{name: KeyTokens}
	if s.pre, err = kv.Str(KeyPre); err != nil {
		return nil, err
	}
	for _, p := range prePatterns {
		if p.name == s.pre {
			s.patterns = []string{p.pattern}
		}
	}
	if s.patterns == nil {
		return nil, unsupportedf(KeyPre, "pre-tokenizer %q", s.pre)
	}
	if s.tokens, err = kv.Strs(KeyTokens); err != nil {
		return nil, err
	}
	if len(s.tokens) > maxTokens {
		return nil, formatErrorf(KeyTokens, "%d tokens, limit %d", len(s.tokens), maxTokens)
	}
	types, err := kv.Ints(KeyTypes)
	if err != nil {
		return nil, err
	}
	if len(types) != len(s.tokens) {
		return nil, formatErrorf(KeyTypes, "%d types for %d tokens", len(types), len(s.tokens))
	}
	for i, t := range types {
		if t < int64(Normal) || t > int64(Byte) {
			return nil, formatErrorf(KeyTypes, "type %d of token %d", t, i)
		}
		s.types = append(s.types, Type(t))
	}
	if s.merges, err = kv.Strs(KeyMerges); err != nil {
		return nil, err
	}
	if s.eos, err = optionalID(kv, KeyEOS, len(s.tokens)); err != nil {
		return nil, err
	}
	if s.bos, err = optionalID(kv, KeyBOS, len(s.tokens)); err != nil {
		return nil, err
	}
	return newVocab(s)
}

// optionalID reads a token id below n, -1 if the key is absent.
func optionalID(kv Metadata, key string, n int) (int32, error) {
	const absent = 1 << 63
	id, err := kv.UintOr(key, absent)
	if err != nil {
		return -1, err
	}
	if id == absent {
		return -1, nil
	}
	if id >= uint64(n) {
		return -1, formatErrorf(key, "token id %d in a vocabulary of %d", id, n)
	}
	return int32(id), nil
}
