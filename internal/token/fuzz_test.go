package token

import (
	"path/filepath"
	"slices"
	"testing"
)

// FuzzEncode checks that any text survives, and that none becomes a special token, in the vocabulary of a tokenizer.json and in the
// one that GGUF metadata carries.
func FuzzEncode(f *testing.F) {
	v := loadVocab(f, filepath.Join(randomDir, "original"))
	r, err := FromGGUF(ggufOf(v))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range sampleTexts(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids := v.Encode(text)
		if got := v.Decode(ids); got != text {
			t.Fatalf("Decode(Encode(%q)) = %q", text, got)
		}
		back := r.Encode(text)
		if len(back) != len(ids) {
			t.Fatalf("%q: %d tokens, from GGUF %d", text, len(ids), len(back))
		}
		for i, id := range ids {
			if v.Type(id) != Normal {
				t.Fatalf("%q: token %d has type %d", text, id, v.Type(id))
			}
			if back[i] != id {
				t.Fatalf("%q: token %d is %d, from GGUF %d", text, i, id, back[i])
			}
		}
		if got := v.DecodeWithSpecial(v.EncodeWithSpecial(text)); got != text {
			t.Fatalf("DecodeWithSpecial(EncodeWithSpecial(%q)) = %q", text, got)
		}
	})
}

// FuzzTokenizerJSON checks that any file is refused or gives a vocabulary that keeps text and can be written to GGUF.
func FuzzTokenizerJSON(f *testing.F) {
	f.Add([]byte(fileOf(`"ab":256`, `"a b"`, `,"added_tokens":[{"id":257,"content":"<s>","special":true}]`)), []byte(`{"eos_token":"<s>"}`))
	f.Add([]byte(fileOf(`"ab":256`, `["a","b"]`, "")), []byte(`{"added_tokens_decoder":{"300":{"content":"x"}}}`))
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0}}}`), []byte(nil))
	f.Fuzz(func(t *testing.T, file, config []byte) {
		v, err := ParseTokenizerJSON(file, config)
		if err != nil {
			return
		}
		const text = "ab <s> é\xff"
		if got := v.Decode(v.Encode(text)); got != text {
			t.Fatalf("Decode(Encode(%q)) = %q", text, got)
		}
		if v.Pre() == "" {
			return
		}
		r, err := FromGGUF(ggufOf(v))
		if err != nil {
			t.Fatalf("as GGUF: %v", err)
		}
		if !slices.Equal(v.EncodeWithSpecial(text), r.EncodeWithSpecial(text)) {
			t.Fatal("GGUF gives other ids")
		}
	})
}
