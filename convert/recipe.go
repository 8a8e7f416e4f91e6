package convert

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/inkling-go/inkling/internal/gguf"
)

// Recipe says which type each tensor of the language model gets: that of the first
// rule whose pattern is the tensor's name. It does not apply to tensors that stay F32
// and to the towers.
type Recipe []Rule

// Rule is one line of a recipe.
type Rule struct {
	Pattern string    // a regular expression for the whole name
	Type    gguf.Type // or Auto
	Auto    bool      // the type that keeps the weights as they came
	re      *regexp.Regexp
}

// NewRule returns a rule, or what is wrong with its pattern. The type is a name of
// ggml's, in any case, or "auto".
func NewRule(pattern, typ string) (Rule, error) {
	re, err := regexp.Compile(`^(?:` + pattern + `)$`)
	if err != nil {
		return Rule{}, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	r := Rule{Pattern: pattern, re: re}
	if strings.EqualFold(typ, string(OutAuto)) {
		r.Auto = true
		return r, nil
	}
	if r.Type, err = gguf.ParseType(typ); err != nil || !encodes(r.Type) {
		return Rule{}, fmt.Errorf("pattern %q: %q is not a type that weights are converted to", pattern, typ)
	}
	return r, nil
}

// maxRecipe bounds a recipe file.
const maxRecipe = 1 << 20

// ReadRecipe reads the recipe in a file: lines "pattern = type". Empty lines and
// lines that begin with # say nothing.
func ReadRecipe(path string) (Recipe, error) {
	data, err := readBounded(path, maxRecipe)
	if err != nil {
		return nil, err
	}
	var rules Recipe
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndex(line, "=")
		if at < 0 {
			return nil, fmt.Errorf("%s:%d: %q, want PATTERN = TYPE", path, i+1, line)
		}
		rule, err := NewRule(strings.TrimSpace(line[:at]), strings.TrimSpace(line[at+1:]))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("%s: no rule", path)
	}
	return rules, nil
}

// String returns the recipe as ReadRecipe reads it.
func (r Recipe) String() string {
	var b strings.Builder
	for _, rule := range r {
		fmt.Fprintf(&b, "%s = %s\n", rule.Pattern, rule.typeName())
	}
	return b.String()
}

func (r Rule) typeName() string {
	if r.Auto {
		return string(OutAuto)
	}
	return r.Type.String()
}

// find returns the rule for a tensor.
func (r Recipe) find(name string) (Rule, bool) {
	for _, rule := range r {
		if rule.re.MatchString(name) {
			return rule, true
		}
	}
	return Rule{}, false
}

// mix is how an output type spreads bits over the tensors. After the habit of
// llama.cpp, what every token goes through gets more bits than the experts, of which
// it sees a few: the output, attention and above all its values, shared experts, and
// the down projections of some layers.
type mix struct {
	base      gguf.Type // of all else, which is most
	embedding gguf.Type
	output    gguf.Type
	values    gguf.Type // attn_v
	attention gguf.Type // the other matrices of attention
	shared    gguf.Type // shared experts
	down      gguf.Type // ffn_down of the layers that get more
}

var mixes = map[OutType]mix{
	OutQ2_K:    {gguf.Q2_K, gguf.Q4_K, gguf.Q6_K, gguf.Q4_K, gguf.Q3_K, gguf.Q4_K, gguf.Q3_K},
	OutQ3_K_M:  {gguf.Q3_K, gguf.Q4_K, gguf.Q6_K, gguf.Q5_K, gguf.Q4_K, gguf.Q5_K, gguf.Q5_K},
	OutQ4_K_M:  {gguf.Q4_K, gguf.Q4_K, gguf.Q6_K, gguf.Q6_K, gguf.Q5_K, gguf.Q6_K, gguf.Q6_K},
	OutQ5_K_M:  {gguf.Q5_K, gguf.Q5_K, gguf.Q6_K, gguf.Q6_K, gguf.Q6_K, gguf.Q6_K, gguf.Q6_K},
	OutQ6_K:    {gguf.Q6_K, gguf.Q6_K, gguf.Q6_K, gguf.Q8_0, gguf.Q6_K, gguf.Q8_0, gguf.Q6_K},
	OutQ4_0:    {gguf.Q4_0, gguf.Q4_0, gguf.Q6_K, gguf.Q8_0, gguf.Q5_0, gguf.Q8_0, gguf.Q4_0},
	OutIQ4_XS:  {gguf.IQ4_XS, gguf.IQ4_XS, gguf.Q6_K, gguf.Q6_K, gguf.Q5_K, gguf.Q6_K, gguf.Q5_K},
	OutIQ3_XXS: {gguf.IQ3_XXS, gguf.IQ4_XS, gguf.Q6_K, gguf.Q5_K, gguf.Q4_K, gguf.Q5_K, gguf.Q4_K},
	OutMXFP4:   {gguf.MXFP4, gguf.Q8_0, gguf.Q8_0, gguf.Q8_0, gguf.Q8_0, gguf.Q8_0, gguf.MXFP4},
	OutNVFP4:   {gguf.NVFP4, gguf.BF16, gguf.BF16, gguf.BF16, gguf.BF16, gguf.BF16, gguf.NVFP4},
}

// experts are the names of the stacks of routed experts.
const experts = `blk\.\d+\.ffn_(gate|up|down)_exps\.weight`

// RecipeFor returns the recipe of an output type for a model of some layers.
func RecipeFor(o OutType, layers int) Recipe {
	m, ok := mixes[o]
	if !ok {
		return Recipe{mustRule(`.*`, string(o))}
	}
	rules := Recipe{
		mustRule(`output\.weight`, m.output.String()),
		mustRule(`token_embd\.weight`, m.embedding.String()),
		mustRule(`blk\.\d+\.attn_v(_b)?\.weight`, m.values.String()),
		mustRule(`blk\.\d+\.attn_.*`, m.attention.String()),
		mustRule(`blk\.\d+\.ffn_.*_shexp\.weight`, m.shared.String()),
		mustRule(`blk\.\d+\.nextn\..*`, m.shared.String()),
	}
	switch o {
	case OutMXFP4, OutNVFP4: // for experts only
		return append(rules, mustRule(experts, m.base.String()), mustRule(`.*`, m.shared.String()))
	}
	if m.down != m.base {
		rules = append(rules, mustRule(`blk\.(`+moreBits(layers)+`)\.ffn_down(_exps)?\.weight`, m.down.String()))
	}
	return append(rules, mustRule(`.*`, m.base.String()))
}

// mustRule is NewRule of patterns and types that are written in this file.
func mustRule(pattern, typ string) Rule {
	r, err := NewRule(pattern, typ)
	if err != nil {
		panic(err)
	}
	return r
}

// moreBits returns the layers whose down projections get more bits, as alternatives
// of a pattern: the first and the last eighth, and every third between.
//
// Source: use_more_bits in llama-quant.cpp.
func moreBits(layers int) string {
	var list []string
	for i := range layers {
		if i < layers/8 || i >= 7*layers/8 || (i-layers/8)%3 == 2 {
			list = append(list, fmt.Sprint(i))
		}
	}
	return strings.Join(list, "|")
}
