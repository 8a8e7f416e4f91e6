package token

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/gguf"
)

var _ Metadata = (*gguf.File)(nil)

// TestGGUFFile writes the vocabulary into a file and reads it back.
func TestGGUFFile(t *testing.T) {
	v := loadVocab(t, tinyDir)
	path := filepath.Join(t.TempDir(), "vocab.gguf")
	w, err := gguf.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	eos, _ := v.EOS()
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.architecture", "inkling"},
		{KeyModel, ModelGPT2},
		{KeyPre, v.Pre()},
		{KeyTokens, v.Tokens()},
		{KeyTypes, v.Types()},
		{KeyMerges, v.Merges()},
		{KeyEOS, uint32(eos)},
		{KeyBOS, uint32(eos)},
	} {
		if err := w.Set(kv.key, kv.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range sampleTexts(t) {
		if d := cmp.Diff(v.EncodeWithSpecial(text), r.EncodeWithSpecial(text)); d != "" {
			t.Errorf("%q (-json +gguf):\n%s", text, d)
		}
	}
	if bos, ok := r.BOS(); !ok || bos != eos {
		t.Errorf("BOS = %d, %v; want %d", bos, ok, eos)
	}
}
