package token

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	kimiRandomDir = "../../testdata/kimi-k25-tiny-random"
	kimiTinyDir   = "../../testdata/kimi-tiny"
)

// TestKimiGolden compares with ids and texts of the reference tokenizer.
func TestKimiGolden(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(kimiRandomDir, "goldens", "tokenizer.json"))
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
	if len(golden.Encode) != 28 || len(golden.Chat) != 6 {
		t.Fatalf("golden file has %d strings and %d prompts, want 28 and 6", len(golden.Encode), len(golden.Chat))
	}
	ranked, err := LoadTiktoken(filepath.Join(kimiRandomDir, "original", "tiktoken.model"))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*Vocab{
		"tokenizer.json": loadVocab(t, filepath.Join(kimiRandomDir, "original")),
		"tiktoken.model": ranked,
	} {
		for s, want := range golden.Special {
			if id, ok := v.ID(s); !ok || id != want || !v.Control(id) {
				t.Errorf("%s: ID(%q) = %d, %v; want control token %d", name, s, id, ok, want)
			}
		}
		for _, g := range golden.Encode {
			t.Run(name+"/"+g.Text, func(t *testing.T) {
				if d := cmp.Diff(g.IDs, append([]int32{}, v.EncodeWithSpecial(g.Text)...)); d != "" {
					t.Errorf("ids (-want +got):\n%s", d)
				}
				if got := v.DecodeWithSpecial(g.IDs); got != g.Decoded {
					t.Errorf("decoded %q, want %q", got, g.Decoded)
				}
				if got := v.Decode(v.Encode(g.Text)); got != g.Text {
					t.Errorf("Decode(Encode) = %q, want %q", got, g.Text)
				}
			})
		}
		for _, g := range golden.Chat {
			if d := cmp.Diff(g.IDs, v.EncodeWithSpecial(g.Text)); d != "" {
				t.Errorf("%s: prompt %q (-want +got):\n%s", name, g.Text, d)
			}
		}
	}
}

// TestTiktokenAgrees compares the vocabularies of tiktoken.model and tokenizer.json: everything that goes into a GGUF file is the same.
func TestTiktokenAgrees(t *testing.T) {
	for _, dir := range []string{kimiTinyDir, filepath.Join(kimiRandomDir, "original")} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			a := loadVocab(t, dir)
			b, err := LoadTiktoken(filepath.Join(dir, "tiktoken.model"))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{
				cmp.Diff(a.Tokens(), b.Tokens()), cmp.Diff(a.Types(), b.Types()), cmp.Diff(a.Merges(), b.Merges()), cmp.Diff(a.Pre(), b.Pre()),
			} {
				if d != "" {
					t.Errorf("tokenizer.json (-), tiktoken.model (+):\n%.2000s", d)
				}
			}
			if a.Pre() != "kimi-k2" {
				t.Errorf("pre %q, want kimi-k2", a.Pre())
			}
			aEOS, _ := a.EOS()
			bEOS, _ := b.EOS()
			aBOS, _ := a.BOS()
			bBOS, _ := b.BOS()
			if aEOS != bEOS || aBOS != bBOS {
				t.Errorf("end %d and %d, beginning %d and %d", aEOS, bEOS, aBOS, bBOS)
			}
		})
	}
}
