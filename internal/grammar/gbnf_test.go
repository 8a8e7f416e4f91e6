package grammar

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var gbnfSamples = map[string]string{
	"list":    "root ::= item+\nitem ::= \"- \" [^\\n]+ \"\\n\"\n",
	"chess":   "root ::= \"1. \" move \" \" move \"\\n\" ([1-9] [0-9]? \". \" move \" \" move \"\\n\")+\nmove ::= (pawn | nonpawn | castle) [+#]?\nnonpawn ::= [NBKQR] [a-h]? [1-8]? \"x\"? [a-h] [1-8]\npawn ::= ([a-h] \"x\")? [a-h] [1-8] (\"=\" [NBKQR])?\ncastle ::= \"O-O\" \"-O\"?\n",
	"arith":   "root ::= (expr \"=\" ws num \"\\n\")+\nexpr ::= term ([-+*/] term)*\nterm ::= ident | num | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]+ ws\nws ::= [ \\t\\n]*\n",
	"nested":  "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"\"\n",
	"palin":   "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"a\" | \"b\" | \"\"\n",
	"unicode": "root ::= [ぁ-んァ-ヶ\\u4e00-\\u9fff]{2,5} . \"\\U0001F600\"?\n",
	"right":   "# comment\nroot ::= # another\n  \"x\" root |\n  \"y\"\n",
}

func TestGBNF(t *testing.T) {
	for _, test := range []struct {
		name, text string
		yes, no    []string
	}{
		{"list", gbnfSamples["list"], []string{"- a\n", "- é\n- b c\n"}, []string{"", "- \n", "- a"}},
		{"chess", gbnfSamples["chess"], []string{"1. e4 e5\n2. Nf3 Nc6\n", "1. d4 O-O-O+\n12. exd8=Q# Kxe1\n"}, []string{"1. e4 e5\n", "1. e9 e5\n2. a4 a4\n"}},
		{"arith", gbnfSamples["arith"], []string{"a+1=2\n", "(x *(y-1)) /3 = 12\n"}, []string{"=1\n", "(a=1\n"}},
		{"two readings", gbnfSamples["nested"], []string{"", "ab", "aabc", strings.Repeat("a", 300) + strings.Repeat("bc", 150)}, []string{"a", "abb"}},
		{"palindromes", gbnfSamples["palin"], []string{"", "aba", "abba", strings.Repeat("ab", 60) + strings.Repeat("ba", 60)}, []string{"ab"}},
		{"unicode", gbnfSamples["unicode"], []string{"あア日", "日本x😀", "日本日本日😀"}, []string{"日本", "ab"}},
		{"comments and lines", gbnfSamples["right"], []string{"y", strings.Repeat("x", 1000) + "y"}, []string{"x"}},
		{"class", `root ::= [^\]\x41-c\-] [a-] ["\\]`, []string{`!a"`, `zé"`[:1] + `-\`}, []string{`]a"`, `Ba"`, `-a"`}},
		{"counts", `root ::= "a"{2} "b"{1,} "c"{0,2} ("d" "e"){,1}`, []string{"aab", "aabbbccde"}, []string{"ab", "aabccc", "aabdede"}},
		{"escapes", `root ::= "\x41\u00e9\n\"" `, []string{"A\u00e9\n\""}, []string{"A"}},
		{"optional rules", "root ::= a b \"!\"\na ::= \"x\"?\nb ::= a a\n", []string{"!", "x!", "xxx!"}, []string{"xxxx!"}},
		{"dead alternative", "root ::= \"a\" dead | \"b\"\ndead ::= \"c\" dead\n", []string{"b"}, []string{"ac"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := FromGBNF(test.text)
			if err != nil {
				t.Fatal(err)
			}
			checkTexts(t, g, test.yes, test.no)
		})
	}
}

// manyRules is a grammar of n rules and the root.
func manyRules(n int) string {
	var b strings.Builder
	b.WriteString("root ::= \"a\"\n")
	for i := range n {
		fmt.Fprintf(&b, "r%d ::= \"a\"\n", i)
	}
	return b.String()
}

func TestBadGBNF(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no root", `a ::= "b"`, `there is no rule "root"`},
		{"undefined", "root ::= \"a\" b", `line 1, column 14: rule "b" is not defined`},
		{"twice", "root ::= \"a\"\nroot ::= \"b\"", "defined twice"},
		{"open literal", `root ::= "a`, "without its end"},
		{"open class", `root ::= [a`, "without its end"},
		{"open group", `root ::= ("a"`, `expected ")"`},
		{"escape", `root ::= "\q"`, "an escape that is not known"},
		{"range", `root ::= [b-a]`, "ends before it begins"},
		{"counts", `root ::= "a"{3,2}`, "second count"},
		{"large count", `root ::= "a"{100000}`, "too large"},
		{"nested counts", `root ::= ((("a"{1000}){1000}){1000}){1000}`, "too large"},
		{"surrogate", `root ::= "\ud800"`, "not a Unicode character"},
		{"token", `root ::= <think>`, `"token reference" is not supported`},
		{"left recursion", "root ::= root \"a\" | \"b\"", `"left recursion" is not supported at root`},
		{"hidden left recursion", "root ::= e x\ne ::= \"e\"?\nx ::= e root \"a\" | \"b\"", `"left recursion" is not supported`},
		{"never ends", `root ::= "a" root`, "no text can satisfy it"},
		{"blow up", "root ::= [ab]* \"a\" [ab]{60}", "too large"},
		{"long", `root ::= "a" #` + strings.Repeat(" ", maxGBNFBytes), "at most 1048576 are allowed"},
		{"deep", "root ::= " + strings.Repeat("(", maxGBNFDepth+1) + `"a"` + strings.Repeat(")", maxGBNFDepth+1), "parentheses nested more than 128 deep"},
		{"many rules", manyRules(maxRules), "at most 32768 are allowed"},
	} {
		_, err := FromGBNF(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestRegex(t *testing.T) {
	for _, test := range []struct {
		re      string
		yes, no []string
	}{
		{`a|bc*`, []string{"a", "b", "bccc"}, []string{"", "ac", "xa"}},
		{`(?i)straße`, []string{"STRAßE", "straße", "STRAẞE"}, []string{"strasse"}},
		{`\d{3}-\w+\s?`, []string{"123-a_9", "000-x "}, []string{"12-a"}},
		{`[^\x00-\x7f]`, []string{"é", "😀"}, []string{"a", "\xc3"}},
		{`.`, []string{"é", "\t"}, []string{"\n", "\r", "\u2028"}},
		{`^a$`, []string{"a"}, []string{"aa"}},
		{`a^b|c`, []string{"c"}, []string{"ab"}},
		{`\p{Greek}+`, []string{"αβγ"}, []string{"abc"}},
		{`(a*)*b`, []string{"b", "aaab"}, []string{"a"}},
	} {
		g, err := FromRegex(test.re)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range test.yes {
			if !matches(g, text) {
				t.Errorf("%s: %q is not accepted", test.re, text)
			}
		}
		for _, text := range test.no {
			if matches(g, text) {
				t.Errorf("%s: %q is accepted", test.re, text)
			}
		}
	}
	var s *SyntaxError
	if _, err := FromRegex(`a(`); !errors.As(err, &s) {
		t.Errorf("a(: %v", err)
	}
	if _, err := FromRegex(`[ab]*a[ab]{20}`); !errors.Is(err, ErrTooLarge) {
		t.Errorf("blow up: %v", err)
	}
}
