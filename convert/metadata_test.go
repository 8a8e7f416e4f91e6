package convert

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/gguf"
)

// TestSizeLabel has labels that published GGUF files carry, with the shapes of
// their models.
func TestSizeLabel(t *testing.T) {
	// inkling: 66 layers of width 6144, 2 of them dense, the others with 256 experts
	// of width 3072 and 2 shared ones; small tensors do not change the label.
	const h, f, dense, vocab = 6144, 3072, 24576, 201024
	inkling := []Tensor{{Name: "token_embd.weight", Dims: []int64{h, vocab}}, {Name: "output.weight", Dims: []int64{h, vocab}}}
	for i := range 66 {
		kv := int64(16 * 128)
		if i%6 == 5 {
			kv = 8 * 128
		}
		inkling = append(inkling,
			Tensor{Name: "attn_q.weight", Dims: []int64{h, 64 * 128}}, Tensor{Name: "attn_output.weight", Dims: []int64{64 * 128, h}},
			Tensor{Name: "attn_k.weight", Dims: []int64{h, kv}}, Tensor{Name: "attn_v.weight", Dims: []int64{h, kv}},
			Tensor{Name: "attn_r.weight", Dims: []int64{h, 64 * 16}})
		if i < 2 {
			inkling = append(inkling, Tensor{Name: "ffn.weight", Dims: []int64{h, 3 * dense}})
			continue
		}
		inkling = append(inkling,
			Tensor{Name: "ffn_gate_inp.weight", Dims: []int64{h, 258}},
			Tensor{Name: "ffn_gate_exps.weight", Dims: []int64{h, f, 256}}, Tensor{Name: "ffn_up_exps.weight", Dims: []int64{h, f, 256}},
			Tensor{Name: "ffn_down_exps.weight", Dims: []int64{f, h, 256}}, Tensor{Name: "ffn_shexp.weight", Dims: []int64{h, 3 * f, 2}})
	}
	one := func(n int64) []Tensor { return []Tensor{{Name: "x.weight", Dims: []int64{n}}} }
	for _, tc := range []struct {
		name    string
		tensors []Tensor
		want    string
	}{
		{"Inkling", inkling, "256x23B"},
		{"8.03 B", one(8030261248), "8.0B"},
		{"70.6 B", one(70553706496), "71B"},
		{"135 M", one(134515008), "135M"},
		{"1.1 T", one(1_100_000_000_000), "1.1T"},
		{"340 weights", one(340), "0.34K"},
		{"nothing", nil, "0.00K"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sizeLabel(tc.tensors); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	for name, want := range map[string]string{
		"inkling-tiny":          "Inkling Tiny",
		"Inkling-Small":         "Inkling Small",
		"mixtral-8x7b-v0.1":     "Mixtral 8x7b v0.1",
		"Kimi-K2.5":             "Kimi K2.5",
		"état":                  "État",
		"--":                    "",
		"llama-3-70B-instruct ": "Llama 3 70B Instruct",
	} {
		if got := title(name); got != want {
			t.Errorf("%q gives %q, want %q", name, got, want)
		}
	}
}

func TestFrontMatter(t *testing.T) {
	for _, tc := range []struct {
		name, card string
		want       map[string]string
	}{
		{"scalars", "---\nlicense: mit\nname: 'A: b'\r\nlink: \"https://x/y\"\n---\nlicense: other\n", map[string]string{"license": "mit", "name": "A: b", "link": "https://x/y"}},
		{"nested left out", "---\nlicense: mit\ntags:\n- a: b\n  c: d\nlist: [x]\n# note: e\n---\n", map[string]string{"license": "mit"}},
		{"no front matter", "# Model\nlicense: mit\n", nil},
		{"never ends", "---\nlicense: mit\n", nil},
		{"empty", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, frontMatter(tc.card)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCardKeys reads the three ways in which cards write lists.
func TestCardKeys(t *testing.T) {
	c := small()
	c.Files = map[string][]byte{"README.md": []byte("---\nlicense: apache-2.0\nbase_model:\n- acme/big-model-v2\n- other\ntags: [chat, \"moe\"]\n" +
		"pipeline_tag: image-text-to-text\nlanguage: en\nwidget:\n- text: no\n---\n# Card\ntags:\n- not\n")}
	dir := c.Write(t)
	report, err := Run(context.Background(), Options{Dir: dir, OutDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(report.Files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make(map[string]any)
	for _, key := range f.Keys() {
		if v, _ := f.Value(key); strings.Contains(key, "base_model") || strings.HasSuffix(key, "s") && strings.HasPrefix(key, "general.") || key == "general.license" {
			got[key] = v
		}
	}
	want := map[string]any{
		"general.license": "apache-2.0", "general.base_model.count": uint32(2),
		"general.base_model.0.name": "Big Model v2", "general.base_model.0.organization": "Acme",
		"general.base_model.0.repo_url": "https://huggingface.co/acme/big-model-v2", "general.base_model.1.name": "Other",
		"general.tags": []string{"chat", "moe", "image-text-to-text"}, "general.languages": []string{"en"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// FuzzCard reads model cards of any kind.
func FuzzCard(f *testing.F) {
	f.Add("---\nlicense: x\ntags:\n- a\n- 'b'\n---\n", "tags")
	f.Add("---\ntags: [", "tags")
	f.Fuzz(func(t *testing.T, card, name string) {
		if list := cardList(card, name); len(list) > maxCardList+1+strings.Count(card, ",") {
			t.Errorf("%d entries", len(list))
		}
		for _, kv := range origins(cardList(card, name)) {
			if kv.Key == "" {
				t.Error("empty key")
			}
		}
	})
}
