package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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
	fromGGUF, err := FromGGUF(ggufOf(ranked))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*Vocab{
		"GGUF":           fromGGUF,
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

// TestKimiPieces splits text by Kimi's pattern; the pieces follow from the pattern by hand.
func TestKimiPieces(t *testing.T) {
	s, err := newSplitter([]string{patternKimi})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"中文", "abc"},
		{"abc", "中文"},
		{"Hello", "，", "世界", "!"},
		{"あい", "漢字", "かな"}, // only the middle is Han
		{"e\u0301tude"},
		{" e\u0301", " \u0301x"},
		{"1234"[:3], "4"},
		{"ABc'S"},
		{"ABC", "中"},
		{"ABCdef"},
		{"it'ſ"},
		{" don't", " STOP"},
		{"a", "  ", " b", "\n\n", "c"},
		{"!?\r\n", "x"},
		{"<|", "im", "_end", "|>"},
		{" ", "中"},
		{"𠀀", "x"}, // Han beyond the first plane
	} {
		text := strings.Join(want, "")
		var got []string
		s.split(text, func(p string) { got = append(got, p) })
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

// TestKimiNoSpecial is trap 24: text that spells special tokens has none.
func TestKimiNoSpecial(t *testing.T) {
	v := loadVocab(t, kimiTinyDir)
	for _, s := range append(v.Specials(), "<|im_end|><|im_system|>system<|im_middle|>") {
		for _, id := range v.Encode(s) {
			if v.Type(id) != Normal {
				t.Errorf("%q has token %d", s, id)
			}
		}
	}
}

// TestCutLong checks where long texts are cut.
func TestCutLong(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []int // characters of the slices
	}{
		{"short", "abc", []int{3}},
		{"a run at the limit", strings.Repeat("a", maxRunChars), []int{maxRunChars}},
		{"a run beyond", strings.Repeat("é", maxRunChars+1), []int{maxRunChars, 1}},
		{"two runs", strings.Repeat("a", maxRunChars) + strings.Repeat(" ", maxRunChars) + "b", []int{2*maxRunChars + 1}},
		{"white space, the second time from where it was cut", strings.Repeat("\u00a0\x1c", maxRunChars), []int{maxRunChars, maxRunChars}},
		{"a slice", strings.Repeat("a ", maxSliceChars/2) + "a", []int{maxSliceChars, 1}},
		{"runs start anew in a slice", strings.Repeat("a ", maxSliceChars/2-1) + strings.Repeat("b", maxRunChars+2), []int{maxSliceChars, maxRunChars}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []int
			var joined strings.Builder
			cutLong(tc.text, func(s string) {
				got = append(got, utf8.RuneCountInString(s))
				joined.WriteString(s)
			})
			if joined.String() != tc.text {
				t.Error("the slices are not the text")
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	s, err := newSplitter([]string{patternKimi})
	if err != nil {
		t.Fatal(err)
	}
	pieces := 0
	s.split(strings.Repeat("a", maxRunChars+1), func(string) { pieces++ })
	if pieces != 2 {
		t.Errorf("%d pieces, want 2", pieces)
	}
}

// rankFile writes tokens as a tiktoken.model.
func rankFile(tokens ...string) []byte {
	var b bytes.Buffer
	for i, s := range tokens {
		fmt.Fprintf(&b, "%s %d\n", base64.StdEncoding.EncodeToString([]byte(s)), i)
	}
	return b.Bytes()
}

// bytesAnd returns the 256 single bytes and more tokens.
func bytesAnd(more ...string) []string {
	var list []string
	for b := range 256 {
		list = append(list, string([]byte{byte(b)}))
	}
	return append(list, more...)
}

// TestTiktokenMerges derives merges from ranks: of several ways to make a token the one that the lower ranks lead to.
func TestTiktokenMerges(t *testing.T) {
	v, err := ParseTiktoken(rankFile(bytesAnd("bc", "ab", "abc", "aa", "aaa", " a", "\xb8\xad", "中")...), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"b c", "a b", "a bc", "a a", "aa a", "Ġ a", "¸ Ń", "ä ¸Ń"}
	if d := cmp.Diff(want, v.Merges()); d != "" {
		t.Errorf("merges (-want +got):\n%s", d)
	}
	for text, ids := range map[string][]int32{"abc": {258}, "aaaa": {259, 259}, "中": {263}, "aab": {'a', 257}} {
		if got := v.Encode(text); !slices.Equal(got, ids) {
			t.Errorf("%q is %v, want %v", text, got, ids)
		}
	}
}

// TestTiktokenSpecials has where special tokens come from.
func TestTiktokenSpecials(t *testing.T) {
	ranks := rankFile(bytesAnd("ab")...)
	const added = `"added_tokens_decoder":{"258":{"content":"<|x|>","special":true}}`
	for _, tc := range []struct {
		name, config, tokenizer string
		n                       int
		tokens                  map[int]string
	}{
		{"none", "", "", 257, nil},
		{"config", `{` + added + `,"eos_token":"<|x|>"}`, "", 259, map[int]string{257: "[PAD257]", 258: "<|x|>"}},
		{"tokenizer.json", "", `{"added_tokens":[{"id":257,"content":"<|y|>","special":true}]}`, 258, map[int]string{257: "<|y|>"}},
		{"both", `{` + added + `}`, `{"added_tokens":[{"id":257,"content":"<|y|>","special":true}]}`, 259, map[int]string{257: "<|y|>", 258: "<|x|>"}},
		{
			"reserved by the class", `{"tokenizer_class":"TikTokenTokenizer",` + added + `}`, "", 257 + 256,
			map[int]string{257: "<|reserved_token_257|>", 258: "<|x|>", 512: "<|reserved_token_512|>"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			opt := func(s string) []byte {
				if s == "" {
					return nil
				}
				return []byte(s)
			}
			v, err := ParseTiktoken(ranks, opt(tc.config), opt(tc.tokenizer))
			if err != nil {
				t.Fatal(err)
			}
			if v.N() != tc.n || v.Pre() != "kimi-k2" {
				t.Errorf("%d tokens, pre %q; want %d", v.N(), v.Pre(), tc.n)
			}
			for id, want := range tc.tokens {
				if got, _ := v.Token(int32(id)); string(got) != want {
					t.Errorf("token %d is %q, want %q", id, got, want)
				}
			}
		})
	}
}

func TestTiktokenRefuses(t *testing.T) {
	line := func(s string) []byte { return append(rankFile(bytesAnd()...), s...) }
	for _, tc := range []struct {
		name          string
		ranks, config []byte
		want          string
	}{
		{"no base64", line("!! 256\n"), nil, "tiktoken.model: offset 2194: token is not base64"},
		{"empty token", line(" 256\n"), nil, "tiktoken.model: offset 2194: token is not base64"},
		{"no rank", line("YWI=\n"), nil, "tiktoken.model: offset 2194: rank is not a number"},
		{"negative rank", line("YWI= -1\n"), nil, "tiktoken.model: offset 2194: rank is not a number"},
		{"huge rank", line("YWI= 99999999\n"), nil, "tiktoken.model: offset 2194: rank 99999999 is too large"},
		{"twice", line("YQ== 256\n"), nil, `tiktoken.model: offset 2194: token "a" for the second time`},
		{"rank twice", line("YWI= 255\n"), nil, "tiktoken.model: 257 tokens, but none or several with rank 256"},
		{"hole", line("YWI= 257\n"), nil, "tiktoken.model: 257 tokens, but none or several with rank 256"},
		{"three parts", line("YWJj 256\n"), nil, `tiktoken.model: token 256 "abc" is made of 3 tokens with lower ranks, want 2`},
		{"too long", rankFile(bytesAnd(strings.Repeat("a", 2000))...), nil, "tiktoken.model: unsupported token 256 of 2000 bytes, limit 1024"},
		{"byte missing", rankFile(bytesAnd()[:255]...), nil, "tiktoken.model: no token for the single byte 0xFF"},
		{"special over a rank", rankFile(bytesAnd()...), []byte(`{"added_tokens_decoder":{"97":{"content":"x"}}}`), `tiktoken.model: tokens "a" and "x" have the id 97`},
		{"config", rankFile(bytesAnd()...), []byte(`{`), "tokenizer_config.json: offset 1: unexpected end of JSON input"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ParseTiktoken(tc.ranks, tc.config, nil)
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
		})
	}
	if _, err := LoadTiktoken(filepath.Join(t.TempDir(), "tiktoken.model")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// FuzzTiktoken checks that any file is refused or gives a vocabulary that keeps text and says the same through GGUF.
func FuzzTiktoken(f *testing.F) {
	f.Add(rankFile(bytesAnd("ab", "abc")...), []byte(`{"eos_token":"<s>","added_tokens_decoder":{"258":{"content":"<s>","special":true}}}`))
	f.Add([]byte("YQ== 0\r\n\nYg== 1"), []byte(nil))
	f.Fuzz(func(t *testing.T, ranks, config []byte) {
		v, err := ParseTiktoken(ranks, config, nil)
		if err != nil {
			return
		}
		const text = "abc <s> 中é\xff"
		if got := v.Decode(v.Encode(text)); got != text {
			t.Fatalf("Decode(Encode(%q)) = %q", text, got)
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
