package grammar

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// bytesOnly has one token per byte; the id is the byte.
var bytesOnly = NewTokens(256, func(id int32) []byte { return []byte{byte(id)} })

// pieces is a small vocabulary with what makes masks hard: tokens across several
// tokens of JSON, parts of characters, the same piece twice, and no piece at all.
func pieces() [][]byte {
	var out [][]byte
	for b := range 256 {
		out = append(out, []byte{byte(b)})
	}
	for _, s := range []string{
		"", "", // control
		"{\"", "\"}", "\",", "\":", "\": ", "\", \"", "\":\"", "{\"a\":", "\"a\"", "}}", "]}", "]]", "[[", "[]", "{}", "},{", "\n", "\n  ", "\n    ",
		"    ", "  ", " \"", "null", "nul", "true", "fal", "false", "tr", "12", "100", "0.5", ".5", "-1", "e5", "1e", "99999", "000",
		"a", "ab", "abc", "name", "hello", " world", "b\"", "\\\"", "\\n", "\\u", "\\u00", "\\ud83d", "\\ude00", "\\\\",
		"é", "日本", "日", "\xe6\x97", "\xa5", "\xc3", "\xf0\x9f", "\x98\x80", "😀", "x\xe6", "\xa5\"", "20", "2024-", "-01", "T", "00:", "@", ".com", "aaaaaaaa", "abcabc",
	} {
		out = append(out, []byte(s))
	}
	return out
}

func tokensOf(pieces [][]byte) *Tokens {
	return NewTokens(len(pieces), func(id int32) []byte { return pieces[id] })
}

// bigVocabulary is n tokens like those of a large multilingual model.
func bigVocabulary(n int) *Tokens {
	r := rand.New(rand.NewPCG(1, 2))
	all := pieces()
	syllables := []string{"an", "er", "in", "on", "re", "st", "th", "al", "le", "it", "ti", "co", "de", "pro", "un", "ex", "ing", "tion", "ment", "ly", "s", "a", "o", "e", "ka", "mi", "su", "do"}
	marks := []string{"\"", "\",", "\":", " \"", "{\"", "\"}", "},", "[{", "\n", "\n  ", "    ", "\\\"", "\\n", "\":\"", "\",\"", "()", ";", "_", ".", "//"}
	seen := map[string]bool{}
	for len(all) < n {
		var s string
		switch k := r.IntN(100); {
		case k < 60:
			if r.IntN(2) == 0 {
				s = " "
			}
			for range 1 + r.IntN(5) {
				s += syllables[r.IntN(len(syllables))]
			}
		case k < 85:
			for range 1 + r.IntN(4) {
				s += string(rune(0x4E00 + r.IntN(20000)))
			}
			if r.IntN(10) == 0 {
				s = s[:len(s)-1]
			}
		case k < 90:
			s = strconv.Itoa(r.IntN(1000))
		case k < 95:
			for range 1 + r.IntN(4) {
				s += marks[r.IntN(len(marks))]
			}
			if r.IntN(2) == 0 {
				s += syllables[r.IntN(len(syllables))]
			}
		default:
			for range 1 + r.IntN(6) {
				s += string(rune(0x400 + r.IntN(256)))
			}
		}
		if !seen[s] {
			seen[s] = true
			all = append(all, []byte(s))
		}
	}
	return tokensOf(all)
}

func ids(mask []uint64) []int32 {
	var out []int32
	for i, w := range mask {
		for ; w != 0; w &= w - 1 {
			out = append(out, int32(64*i+bits.TrailingZeros64(w)))
		}
	}
	return out
}

// checkTexts reports the texts of yes that do not belong to g, and those of no that do.
func checkTexts(t *testing.T, g *Grammar, yes, no []string) {
	t.Helper()
	for _, text := range yes {
		if !matches(g, text) {
			t.Errorf("%q is not accepted", text)
		}
	}
	for _, text := range no {
		if matches(g, text) {
			t.Errorf("%q is accepted", text)
		}
	}
}

// matches reports whether text belongs to g, read byte by byte.
func matches(g *Grammar, text string) bool {
	m := g.Matcher(bytesOnly)
	for i := range len(text) {
		if !m.Accept(int32(text[i])) {
			return false
		}
	}
	return m.CanEnd()
}

// greedy splits text into the longest tokens.
func greedy(t *Tokens, text string) []int32 {
	var out []int32
	for len(text) > 0 {
		best := int32(-1)
		for id := range t.n {
			p := t.piece(int32(id))
			if len(p) > 0 && bytes.HasPrefix([]byte(text), p) && (best < 0 || len(p) > len(t.piece(best))) {
				best = int32(id)
			}
		}
		out = append(out, best)
		text = text[len(t.piece(best)):]
	}
	return out
}

// walk writes a random text of g: random tokens first, then those that bring the
// text to its end.
func walk(t *testing.T, g *Grammar, tk *Tokens, r *rand.Rand) string {
	t.Helper()
	m := g.Matcher(tk)
	var text []byte
	free := r.IntN(40)
	for step := 0; ; step++ {
		if m.CanEnd() && (step > free || r.IntN(4) == 0) {
			return string(text)
		}
		if step > 5000 {
			t.Fatalf("no end after %d tokens: %.300q", step, text)
		}
		allowed := ids(m.Allowed())
		if len(allowed) == 0 {
			if m.CanEnd() {
				return string(text)
			}
			t.Fatalf("stuck after %q", text)
		}
		id := allowed[r.IntN(len(allowed))]
		if step > free {
			var ends []int32
			for _, b := range "}]\"\"\"ab 0" {
				if slices.Contains(allowed, b) {
					ends = append(ends, b)
				}
			}
			if len(ends) > 0 && r.IntN(4) > 0 {
				id = ends[r.IntN(len(ends))]
			}
		}
		if !m.Accept(id) {
			t.Fatalf("after %q: token %q is allowed and not accepted", text, tk.piece(id))
		}
		text = append(text, tk.piece(id)...)
	}
}

func schemaGrammar(t testing.TB, schema string) *Grammar {
	t.Helper()
	g, err := FromJSONSchema([]byte(schema))
	if err != nil {
		t.Fatalf("%s\n%v", schema, err)
	}
	return g
}
