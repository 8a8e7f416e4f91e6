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
		Encode []struct {
			Text    string
			IDs     []int32
			Decoded string
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	v := loadVocab(t, filepath.Join(kimiRandomDir, "original"))
	for _, g := range golden.Encode {
		t.Run(g.Text, func(t *testing.T) {
			if d := cmp.Diff(g.IDs, append([]int32{}, v.EncodeWithSpecial(g.Text)...)); d != "" {
				t.Errorf("ids (-want +got):\n%s", d)
			}
			if got := v.DecodeWithSpecial(g.IDs); got != g.Decoded {
				t.Errorf("decoded %q, want %q", got, g.Decoded)
			}
		})
	}
}
