package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const byteLevel = `{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}`

// byteVocab is the vocabulary members of the 256 single bytes, with the ids 0 to 255 in byte order.
func byteVocab() string {
	var members []string
	for b, r := range alphabet.char {
		key, _ := json.Marshal(string(r))
		members = append(members, fmt.Sprintf("%s:%d", key, b))
	}
	return strings.Join(members, ",")
}

// fileOf is a tokenizer.json with the given tokens over the single bytes.
func fileOf(vocab, merges, rest string) string {
	if vocab != "" {
		vocab = "," + vocab
	}
	return `{"model":{"type":"BPE","vocab":{` + byteVocab() + vocab + `},"merges":[` + merges + `]},"pre_tokenizer":` + byteLevel + rest + `}`
}

func vocabOf(t testing.TB, vocab, merges string) *Vocab {
	t.Helper()
	// "a" is a single byte already.
	vocab = strings.TrimPrefix(vocab, `"a": 256, `)
	v, err := ParseTokenizerJSON([]byte(fileOf(vocab, merges, "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParseTokenizerJSON(t *testing.T) {
	const two = `"ab":256,"abc":257`
	for _, tc := range []struct {
		name, file, config string
		text               string
		want               []int32
	}{
		{"merges as strings", fileOf(two, `"a b","ab c"`, ""), "", "abcab", []int32{257, 256}},
		{"merges as pairs", fileOf(two, `["a","b"],["ab","c"]`, ""), "", "abcab", []int32{257, 256}},
		{"unreachable token", fileOf(two, `"a b"`, ""), "", "abc", []int32{256, 'c'}},
		{
			"ignore_merges takes whole pieces",
			strings.Replace(fileOf(two, `"a b"`, ""), `"type":"BPE"`, `"type":"BPE","ignore_merges":true`, 1),
			"", "abc abc",
			[]int32{257, ' ', 256, 'c'},
		},
		{"special token", fileOf(two, `"a b"`, `,"added_tokens":[{"id":300,"content":"<s>","special":true}]`), "", "ab<s>", []int32{256, 300}},
		{
			"longest special token",
			fileOf("", "", `,"added_tokens":[{"id":256,"content":"<s>","special":true},{"id":257,"content":"<s>>","special":false}]`),
			"", "<s>>>",
			[]int32{257, '>'},
		},
		{
			"special token of the config", fileOf("", "", ""),
			`{"added_tokens_decoder":{"256":{"content":"<s>","special":true}}}`, "<s>",
			[]int32{256},
		},
		{"contractions of GPT-2", fileOf("", "", ""), "", "it's", []int32{'i', 't', '\'', 's'}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var config []byte
			if tc.config != "" {
				config = []byte(tc.config)
			}
			v, err := ParseTokenizerJSON([]byte(tc.file), config)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, v.EncodeWithSpecial(tc.text)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestHolesAndTypes(t *testing.T) {
	file := fileOf("", "", `,"added_tokens":[{"id":258,"content":"<s>","special":true},{"id":260,"content":"<t>","special":false}]`)
	v, err := ParseTokenizerJSON([]byte(file), []byte(`{"eos_token":{"content":"<s>"},"bos_token":"<lost>"}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"[PAD256]", "[PAD257]", "<s>", "[PAD259]", "<t>"}, v.Tokens()[256:]); d != "" {
		t.Errorf("tokens (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int32{5, 5, 3, 5, 4}, v.Types()[256:]); d != "" {
		t.Errorf("types (-want +got):\n%s", d)
	}
	if id, ok := v.EOS(); !ok || id != 258 {
		t.Errorf("EOS = %d, %v; want 258", id, ok)
	}
	if _, ok := v.BOS(); ok {
		t.Error("BOS is set to a token that is not there")
	}
	if v.Control(260) || v.Decode([]int32{258, 260}) != "<t>" {
		t.Error("a user-defined token is text, a control token is not")
	}
	if v.Pre() != "gpt-2" {
		t.Errorf("Pre = %q", v.Pre())
	}
	if v.Used() != 261 {
		t.Errorf("Used = %d, want 261", v.Used())
	}
}

func TestTokenizerJSONErrors(t *testing.T) {
	model := func(member string) string {
		return strings.Replace(fileOf("", "", ""), `"type":"BPE"`, `"type":"BPE",`+member, 1)
	}
	pre := func(p string) string { return strings.Replace(fileOf("", "", ""), byteLevel, p, 1) }
	split := func(members string) string {
		return pre(`{"type":"Sequence","pretokenizers":[{"type":"Split",` + members + `},` + byteLevel + `]}`)
	}
	added := func(list string) string { return fileOf("", "", `,"added_tokens":[`+list+`]`) }
	for _, tc := range []struct{ name, file, config, want string }{
		{"not JSON", `{"model":`, "", "tokenizer.json: offset 9: unexpected end"},
		{"wrong type", `{"model":{"type":"BPE","vocab":[]}}`, "", "field model.vocab holds array"},
		{"unigram", `{"model":{"type":"Unigram","vocab":[["a",1.0]]}}`, "", `unsupported model type "Unigram"`},
		{"dropout", model(`"dropout":0.1`), "", "unsupported model dropout"},
		{"prefix", model(`"continuing_subword_prefix":"##"`), "", "continuing_subword_prefix"},
		{"suffix", model(`"end_of_word_suffix":"</w>"`), "", "end_of_word_suffix"},
		{"byte fallback", model(`"byte_fallback":true`), "", "byte_fallback"},
		{"normalizer", fileOf("", "", `,"normalizer":{"type":"NFC"}`), "", `unsupported normalizer "NFC"`},
		{"nested normalizer", fileOf("", "", `,"normalizer":{"type":"Sequence","normalizers":[{"type":"Lowercase"}]}`), "", `"Lowercase"`},
		{"no pre-tokenizer", pre("null"), "", "pre-tokenizer: none"},
		{"metaspace", pre(`{"type":"Metaspace"}`), "", `pre-tokenizer "Metaspace"`},
		{"no ByteLevel", pre(`{"type":"Sequence","pretokenizers":[]}`), "", "without ByteLevel"},
		{"prefix space", pre(`{"type":"ByteLevel","add_prefix_space":true}`), "", "add_prefix_space"},
		{"digits", pre(`{"type":"Sequence","pretokenizers":[{"type":"Digits"},` + byteLevel + `]}`), "", `pre-tokenizer "Digits" at place 0`},
		{"removing split", split(`"pattern":{"Regex":"x"},"behavior":"Removed"`), "", "not an isolating"},
		{"inverted split", split(`"pattern":{"Regex":"x"},"behavior":"Isolated","invert":true`), "", "not an isolating"},
		{"string split", split(`"pattern":{"String":"x"},"behavior":"Isolated"`), "", "not an isolating"},
		{"broken pattern", split(`"pattern":{"Regex":"("},"behavior":"Isolated"`), "", "pre-tokenizer pattern"},
		{"set intersection", split(`"pattern":{"Regex":"[a&&b]"},"behavior":"Isolated"`), "", "set intersection"},
		{"id twice", fileOf(`"x1":5`, "", ""), "", `have the id 5`},
		{"negative id", fileOf(`"x1":-1`, "", ""), "", `id -1 of token "x1"`},
		{"huge id", fileOf(`"x1":2000000000`, "", ""), "", `id 2000000000 of token "x1"`},
		{"fractional id", fileOf(`"x1":1.5`, "", ""), "", "field model.vocab"},
		{"merge of three", fileOf("", `["a","b","c"]`, ""), "", "merge of 3 parts"},
		{"merge makes nothing", fileOf("", `"a b"`, ""), "", `merge 0 "a b"`},
		{"empty added token", added(`{"id":256,"content":"","special":true}`), "", "special token 256 is empty"},
		{"added token twice", added(`{"id":256,"content":"<s>"},{"id":257,"content":"<s>"}`), "", "special tokens 256 and 257"},
		{"added over another", added(`{"id":65,"content":"<s>"}`), "", `tokens "A" and "<s>" have the id 65`},
		{"added elsewhere", added(`{"id":256,"content":"A"}`), "", `token "A" has the ids 65 and 256`},
		{"huge added id", added(`{"id":2000000000,"content":"<s>"}`), "", "id 2000000000"},
		{"stripping token", added(`{"id":256,"content":"<s>","lstrip":true}`), "", "lstrip"},
		{"missing bytes", `{"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"pre_tokenizer":` + byteLevel + `}`, "", "single byte 0x00"},
		{"config is not JSON", fileOf("", "", ""), `{`, "tokenizer_config.json: offset 1"},
		{"config key", fileOf("", "", ""), `{"added_tokens_decoder":{"x":{"content":"<s>"}}}`, `key "x"`},
		{"config disagrees", added(`{"id":256,"content":"<s>"}`), `{"added_tokens_decoder":{"256":{"content":"<t>"}}}`, `in tokenizer.json it is "<s>"`},
	} {
		var config []byte
		if tc.config != "" {
			config = []byte(tc.config)
		}
		_, err := ParseTokenizerJSON([]byte(tc.file), config)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
			continue
		}
		var (
			format      *FormatError
			unsupported *UnsupportedError
		)
		if !errors.As(err, &format) && !errors.As(err, &unsupported) {
			t.Errorf("%s: error is a %T", tc.name, err)
		}
	}
}

func TestLoadTokenizerJSONFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadTokenizerJSON(filepath.Join(dir, "tokenizer.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want a missing file", err)
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tokenizer.json", fileOf("", "", ""))
	if v, err := LoadTokenizerJSON(filepath.Join(dir, "tokenizer.json")); err != nil || v.N() != 256 {
		t.Fatalf("without config: %v", err)
	}
	write("tokenizer_config.json", `{"added_tokens_decoder":{"256":{"content":"<s>"}}}`)
	if v, err := LoadTokenizerJSON(filepath.Join(dir, "tokenizer.json")); err != nil || v.N() != 257 {
		t.Fatalf("with config: %v", err)
	}
}

// TestPatterns shows what the two known patterns do with a few texts, derived by hand from the patterns.
func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          []string
	}{
		{patternO200k, "it'ſ WE'LL", []string{"it'ſ", " WE'LL"}},
		{patternO200k, "camelCase HTTPServer", []string{"camel", "Case", " HTTPServer"}},
		{patternO200k, "1234 a", []string{"123", "4", " a"}},
		{patternO200k, "a  b\n\n c", []string{"a", " ", " b", "\n\n", " c"}},
		{patternO200k, "x//\n", []string{"x", "//\n"}},
		{patternO200k, "e\u0301 x", []string{"e\u0301", " x"}},
		{patternO200k, "\xffab", []string{"\xffab"}}, // U+FFFD is neither letter nor number: it leads the word
		{patternGPT2, "it's 12  x", []string{"it", "'s", " 12", " ", " x"}},
	} {
		s, err := newSplitter([]string{tc.pattern})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		s.split(tc.text, func(p string) { got = append(got, p) })
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", tc.text, d)
		}
	}
}

// TestSeveralSplits applies patterns one after the other and keeps what none of them matches.
func TestSeveralSplits(t *testing.T) {
	s, err := newSplitter([]string{`\d`, `b+`})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	s.split("abb1bba2é", func(p string) { got = append(got, p) })
	if d := cmp.Diff([]string{"a", "bb", "1", "bb", "a", "2", "é"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
