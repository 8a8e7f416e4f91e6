package token

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// metadata is the key-value part of a GGUF file in a map.
type metadata map[string]any

var errMissing = errors.New("missing")

func get[T any](m metadata, key string) (T, error) {
	v, ok := m[key].(T)
	if !ok {
		return v, fmt.Errorf("%s: %w", key, errMissing)
	}
	return v, nil
}

func (m metadata) Str(key string) (string, error)    { return get[string](m, key) }
func (m metadata) Strs(key string) ([]string, error) { return get[[]string](m, key) }
func (m metadata) Ints(key string) ([]int64, error)  { return get[[]int64](m, key) }

func (m metadata) UintOr(key string, def uint64) (uint64, error) {
	if _, ok := m[key]; !ok {
		return def, nil
	}
	return get[uint64](m, key)
}

// ggufOf is the metadata that a converter writes for v.
func ggufOf(v *Vocab) metadata {
	types := make([]int64, v.N())
	for i, t := range v.Types() {
		types[i] = int64(t)
	}
	m := metadata{KeyModel: ModelGPT2, KeyPre: v.Pre(), KeyTokens: v.Tokens(), KeyTypes: types, KeyMerges: v.Merges()}
	if id, ok := v.EOS(); ok {
		m[KeyEOS] = uint64(id)
	}
	return m
}

func TestGGUFRoundTrip(t *testing.T) {
	for _, tc := range []struct {
		dir       string
		n, padded int
	}{
		{tinyDir, 1268, 1280},
		{filepath.Join(randomDir, "original"), 1042, 1088},
	} {
		v := loadVocab(t, tc.dir)
		if v.N() != tc.n || v.Used() != tc.n {
			t.Fatalf("N = %d, Used = %d, want %d", v.N(), v.Used(), tc.n)
		}
		padded, err := v.Pad(tc.padded)
		if err != nil {
			t.Fatal(err)
		}
		r, err := FromGGUF(ggufOf(padded))
		if err != nil {
			t.Fatal(err)
		}
		if r.N() != tc.padded || r.Used() != tc.n {
			t.Errorf("after the round trip N = %d, Used = %d, want %d and %d", r.N(), r.Used(), tc.padded, tc.n)
		}
		for _, text := range sampleTexts(t) {
			if d := cmp.Diff(v.Encode(text), r.Encode(text)); d != "" {
				t.Errorf("%q (-json +gguf):\n%s", text, d)
			}
			if d := cmp.Diff(v.EncodeWithSpecial(text), r.EncodeWithSpecial(text)); d != "" {
				t.Errorf("%q with special (-json +gguf):\n%s", text, d)
			}
		}
		eos, ok := v.EOS()
		if back, okBack := r.EOS(); !ok || !okBack || back != eos || eos != idOf(t, v, "<|content_model_end_sampling|>") {
			t.Errorf("EOS = %d, %v, after the round trip %d, %v", eos, ok, back, okBack)
		}
		if _, ok := v.BOS(); ok {
			t.Error("the vocabulary has a BOS, the file names none")
		}
	}
}

func idOf(t testing.TB, v *Vocab, s string) int32 {
	t.Helper()
	id, ok := v.ID(s)
	if !ok {
		t.Fatalf("no token %q", s)
	}
	return id
}

// sampleTexts are texts of several scripts, special token strings, and broken UTF-8.
func sampleTexts(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(devFile)
	if err != nil {
		t.Fatal(err)
	}
	return append(strings.Split(string(data[:20000]), "\n"),
		"Смотритель 灯台守 그림에는 कहानी كتب 😀🚀👩\u200d👩\u200d👧", "'ſ it'S WE'LL", "\r\n\r\n  \t x", "<|end_message|>a<|message_user|>",
		"<|end_message", "\xff\xfe\xc3", "a\xe4\xb8b\xf0\x9f\x98", "[PAD1270]", "12345678", strings.Repeat(" ", 300)+"x")
}

func TestPadding(t *testing.T) {
	v := loadVocab(t, tinyDir)
	p, err := v.Pad(1280)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Tokens()[1270]; got != "[PAD1270]" || p.Type(1270) != Unused {
		t.Errorf("token 1270 = %q of type %d, want [PAD1270] of type %d", got, p.Type(1270), Unused)
	}
	if _, ok := p.ID("[PAD1270]"); ok || slices.Contains(p.EncodeWithSpecial("[PAD1270]"), 1270) {
		t.Error("an unused token can be written as text")
	}
	if got := p.Decode([]int32{1270, 1279}); got != "" {
		t.Errorf("unused tokens decode to %q, want nothing", got)
	}
	if piece, ok := p.Token(1279); !ok || string(piece) != "[PAD1279]" {
		t.Errorf("Token(1279) = %q, %v", piece, ok)
	}
	if v.N() != 1268 {
		t.Errorf("Pad changed the original to %d tokens", v.N())
	}
	for _, n := range []int{1267, maxTokens + 1} {
		if _, err := v.Pad(n); err == nil {
			t.Errorf("Pad(%d) succeeded", n)
		}
	}
}

// TestControlTokens checks that plain text never becomes a special token.
func TestControlTokens(t *testing.T) {
	v := loadVocab(t, tinyDir)
	for _, s := range v.Specials() {
		id := idOf(t, v, s)
		for _, text := range []string{s, "a" + s + "b", s + s} {
			ids := v.Encode(text)
			for _, got := range ids {
				if v.Type(got) != Normal {
					t.Fatalf("Encode(%q) has token %d of type %d", text, got, v.Type(got))
				}
			}
			if got := v.Decode(ids); got != text {
				t.Errorf("Decode(Encode(%q)) = %q", text, got)
			}
		}
		if d := cmp.Diff([]int32{id}, v.EncodeWithSpecial(s)); d != "" {
			t.Errorf("EncodeWithSpecial(%q) (-want +got):\n%s", s, d)
		}
		if v.Piece(id) != nil || v.Decode([]int32{id}) != "" || v.DecodeWithSpecial([]int32{id}) != s {
			t.Errorf("control token %q shows up in text or does not when asked for", s)
		}
	}
	for _, id := range []int32{-1, 1268, 1 << 30} {
		if _, ok := v.Token(id); ok || v.Piece(id) != nil || v.Control(id) {
			t.Errorf("id %d outside the vocabulary has a token", id)
		}
	}
}

func TestEncodeSegments(t *testing.T) {
	v := loadVocab(t, tinyDir)
	user, image := idOf(t, v, "<|message_user|>"), idOf(t, v, "<|unused_200054|>")
	text := func(s string) Segment { return Segment{Kind: TextSegment, Text: s} }
	control := Segment{Kind: ControlSegment, ID: user}
	medium := func(i int) Segment { return Segment{Kind: MediaSegment, Media: i} }
	slots := func(media int) (int32, int) { return image, media + 2 }

	ids, got, err := v.EncodeSegments([]Segment{control, text("Hel"), text("lo <|end_message|>"), medium(1), medium(0), text("x")}, slots)
	if err != nil {
		t.Fatal(err)
	}
	want := append([]int32{user}, v.Encode("Hello <|end_message|>")...)
	pos := len(want)
	want = append(want, image, image, image, image, image)
	want = append(want, v.Encode("x")...)
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]Slot{{Media: 1, Pos: pos, N: 3}, {Media: 0, Pos: pos + 3, N: 2}}, got); d != "" {
		t.Errorf("slots (-want +got):\n%s", d)
	}
	for name, tc := range map[string]struct {
		seg   Segment
		slots func(int) (int32, int)
	}{
		"text token as control": {Segment{Kind: ControlSegment, ID: 5}, slots},
		"id out of range":       {Segment{Kind: ControlSegment, ID: 1 << 20}, slots},
		"no slots":              {medium(0), nil},
		"empty medium":          {medium(0), func(int) (int32, int) { return image, 0 }},
		"endless medium":        {medium(0), func(int) (int32, int) { return image, maxSlots + 1 }},
		"text token as slot":    {medium(0), func(int) (int32, int) { return 5, 1 }},
	} {
		if _, _, err := v.EncodeSegments([]Segment{tc.seg}, tc.slots); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestFromGGUFErrors(t *testing.T) {
	v := loadVocab(t, tinyDir)
	with := func(key string, value any) metadata {
		m := ggufOf(v)
		if value == nil {
			delete(m, key)
		} else {
			m[key] = value
		}
		return m
	}
	badTypes := func(t int64) []int64 {
		types := ggufOf(v)[KeyTypes].([]int64)
		types[3] = t
		return types
	}
	tokens := v.Tokens()
	tokens[7] = tokens[8]
	var (
		unsupported *UnsupportedError
		format      *FormatError
	)
	for _, tc := range []struct {
		name string
		kv   metadata
		want string // in the message
		as   any
	}{
		{"other model", with(KeyModel, "llama"), `tokenizer model "llama"`, &unsupported},
		{"other pre-tokenizer", with(KeyPre, "qwen2"), `pre-tokenizer "qwen2"`, &unsupported},
		{"no model", with(KeyModel, nil), KeyModel, nil},
		{"no pre-tokenizer", with(KeyPre, nil), KeyPre, nil},
		{"no tokens", with(KeyTokens, nil), KeyTokens, nil},
		{"no types", with(KeyTypes, nil), KeyTypes, nil},
		{"no merges", with(KeyMerges, nil), KeyMerges, nil},
		{"few types", with(KeyTypes, []int64{1}), "1 types for 1268 tokens", &format},
		{"type 0", with(KeyTypes, badTypes(0)), "type 0 of token 3", &format},
		{"byte type", with(KeyTypes, badTypes(6)), "type 6 of token 3", &unsupported},
		{"same token twice", with(KeyTokens, tokens), "tokens 7 and 8 are both", &format},
		{"lost byte", with(KeyTypes, badTypes(5)), "no token for the single byte 0x24", &format},
		{"merge of unknown", with(KeyMerges, []string{"h zzzz"}), `merge 0 "h zzzz"`, &format},
		{"merge without space", with(KeyMerges, []string{"he"}), `merge 0 is "he"`, &format},
		{"merge of three", with(KeyMerges, []string{"h e l"}), `merge 0 is "h e l"`, &format},
		{"eos beyond", with(KeyEOS, uint64(1268)), "token id 1268 in a vocabulary of 1268", &format},
	} {
		_, err := FromGGUF(tc.kv)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
		} else if tc.as != nil && !errors.As(err, tc.as) {
			t.Errorf("%s: error is a %T", tc.name, err)
		}
	}
}
