package token

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	randomDir = "../../testdata/inkling-tiny-random"
	tinyDir   = "../../testdata/inkling-tiny"
	devFile   = "../../testdata/inkling-tiny-eval/dev.jsonl"
)

func loadVocab(t testing.TB, dir string) *Vocab {
	t.Helper()
	v, err := LoadTokenizerJSON(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestGolden compares with ids and texts of the reference tokenizer.
func TestGolden(t *testing.T) {
	v := loadVocab(t, filepath.Join(randomDir, "original"))
	data, err := os.ReadFile(filepath.Join(randomDir, "goldens", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Special map[string]int32 `json:"special_tokens"`
		Encode  []struct {
			Text    string
			IDs     []int32
			Decoded string
		}
		Chat []struct {
			Text string
			IDs  []int32
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Encode) != 28 || len(golden.Chat) != 10 {
		t.Fatalf("golden file has %d strings and %d prompts, want 28 and 10", len(golden.Encode), len(golden.Chat))
	}
	for s, want := range golden.Special {
		if id, ok := v.ID(s); !ok || id != want || !v.Control(id) {
			t.Errorf("ID(%q) = %d, %v; want control token %d", s, id, ok, want)
		}
	}
	for _, g := range golden.Encode {
		t.Run(g.Text, func(t *testing.T) {
			if d := cmp.Diff(g.IDs, append([]int32{}, v.EncodeWithSpecial(g.Text)...)); d != "" {
				t.Errorf("ids (-want +got):\n%s", d)
			}
			if got := v.DecodeWithSpecial(g.IDs); got != g.Decoded {
				t.Errorf("DecodeWithSpecial = %q, want %q", got, g.Decoded)
			}
			if got := v.Decode(v.Encode(g.Text)); got != g.Text {
				t.Errorf("Decode(Encode) = %q, want %q", got, g.Text)
			}
		})
	}
	for _, g := range golden.Chat {
		if d := cmp.Diff(g.IDs, v.EncodeWithSpecial(g.Text)); d != "" {
			t.Errorf("prompt %q (-want +got):\n%s", g.Text, d)
		}
	}
}
