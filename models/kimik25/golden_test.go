package kimik25

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
)

// The reference's figures for float32: intermediate results 1e-4, logits 1e-3. A
// GPU adds up in another order and has the fast exponentials.
var (
	tapTol   = testutil.Tol{Abs: 1e-4, Rel: 1e-4}
	logitTol = testutil.Tol{Abs: 1e-3}
)

func init() {
	if d := os.Getenv("INKLING_TEST_DEVICE"); d != "" && d != "cpu" {
		tapTol, logitTol = testutil.Tol{Abs: 4e-4, Rel: 4e-4}, testutil.Tol{Abs: 2e-3}
	}
}

// halves puts the firsts of all pairs of each row before the seconds, as the
// reference leaves them, and heads before tokens.
//
//	x: [tokens][heads][rope]
func halves(x []float32, rope, heads int) []float32 {
	tokens := len(x) / rope / heads
	out := make([]float32, len(x))
	for t := range tokens {
		for h := range heads {
			for d := range rope {
				out[(h*tokens+t)*rope+d%2*rope/2+d/2] = x[(t*heads+h)*rope+d]
			}
		}
	}
	return out
}

// TestPrefillGolden compares every named result of a 64-token prefill with the
// reference, in the order of computation: the first failure is the cause.
func TestPrefillGolden(t *testing.T) {
	golden := testutil.OpenGolden(t, random, "text_prefill")
	m := loadRandom(t)
	var ids, weights []float32
	compared := []string{"input_ids", "logits"}
	m.OnTap = func(name string, layer int, shape [4]int64, got []float32) {
		key := fmt.Sprintf("layer%d.%s", layer, name)
		switch name {
		case "final_norm":
			key = "hidden.final_norm"
		case "layer":
			key = fmt.Sprintf("hidden.layer%d", layer)
		case "q_rot":
			got = halves(got, int(shape[0]), int(shape[1]))
		case "k_rot":
			got = halves(got, int(shape[0]), 1)
		case "router_indices":
			ids = got
			return // compared below, in one order
		case "router_weights":
			if weights = got; layer == 2 {
				sortExperts(ids, weights, int(shape[0]))
				testutil.Close(t, "layer2.router_indices", ids, toFloats(golden.Ints("layer2.router_indices")), testutil.Tol{})
				testutil.Close(t, key, weights, golden.Floats(key), tapTol)
				compared = append(compared, "layer2.router_indices", key)
			}
			return
		}
		if golden.Has(key) {
			compared = append(compared, key)
			testutil.Close(t, key, got, golden.Floats(key), tapTol)
		}
	}
	c := newTestCache(t, m, 1, 128, binding.F32)
	tokens := goldenIDs(golden, "input_ids")
	got := forward(t, m, c, tokens, true)
	testutil.Close(t, "logits", got, golden.Floats("logits"), logitTol)

	// Single tokens behind a prefill of 40.
	m.OnTap = nil
	c.Reset(0)
	forward(t, m, c, tokens[:40], false)
	got = nil
	for i := 40; i < 64; i++ {
		got = append(got, forward(t, m, c, tokens[i:i+1], false)...)
	}
	testutil.Close(t, "decode_logits", got, golden.Floats("decode_logits"), logitTol)

	// The expanded keys and values never exist here; the tables are compared below.
	compared = append(compared, "decode_logits", "layer2.kv_b", "rope_cos", "rope_sin", "rope_inv_freq")
	names := golden.Names()
	slices.Sort(names)
	slices.Sort(compared)
	if !slices.Equal(names, compared) {
		t.Errorf("compared %v, want %v", compared, names)
	}
}

func toFloats(x []int64) []float32 {
	var out []float32
	for _, v := range x {
		out = append(out, float32(v))
	}
	return out
}

// sortExperts orders each token's k experts by their index.
func sortExperts(ids, weights []float32, k int) {
	for r := 0; r < len(ids); r += k {
		order := make([]int, k)
		for i := range order {
			order[i] = r + i
		}
		slices.SortFunc(order, func(a, b int) int { return int(ids[a]) - int(ids[b]) })
		i, w := make([]float32, k), make([]float32, k)
		for j, o := range order {
			i[j], w[j] = ids[o], weights[o]
		}
		copy(ids[r:], i)
		copy(weights[r:], w)
	}
}

// TestRotationGolden: YaRN's frequencies, its factor on the scores, and that
// the cosines have none.
func TestRotationGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "text_prefill")
	var facts struct {
		Facts struct {
			Scaling float64 `json:"attention_scaling"`
			Factor  float64 `json:"rope_attention_factor"`
		}
	}
	testutil.GoldenJSON(t, random, "text_prefill", &facts)
	c := loadRandom(t).cfg
	if got := float64(c.rotation.scale(c.nope + c.rope)); math.Abs(got-facts.Facts.Scaling) > 1e-7 {
		t.Errorf("score scale %v, want %v", got, facts.Facts.Scaling)
	}
	if c.rotation.attnFactor != facts.Facts.Factor {
		t.Errorf("factor of the cosines %v, want %v", c.rotation.attnFactor, facts.Facts.Factor)
	}
	inv := c.rotation.inverseFrequencies(c.rope)
	freq := make([]float32, len(inv))
	var cos, sin []float32
	for i, v := range inv {
		freq[i] = 1 / v
	}
	for p := range 64 {
		for half := range 2 * len(inv) {
			s, co := math.Sincos(float64(p) / float64(inv[half%len(inv)]))
			cos, sin = append(cos, float32(co)), append(sin, float32(s))
		}
	}
	testutil.Close(t, "rope_inv_freq", freq, g.Floats("rope_inv_freq"), testutil.Tol{Rel: 1e-6})
	testutil.Close(t, "rope_cos", cos, g.Floats("rope_cos"), testutil.Tol{Abs: 1e-5})
	testutil.Close(t, "rope_sin", sin, g.Floats("rope_sin"), testutil.Tol{Abs: 1e-5})
}

// TestGreedyGolden generates 48 tokens from each of four prompts, and compares
// the five largest logits of every step.
func TestGreedyGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "greedy")
	m := loadRandom(t)
	c := newTestCache(t, m, 1, 128, binding.F32)
	for p := range 4 {
		name := fmt.Sprintf("prompt%d.", p)
		c.Reset(0)
		logits := forward(t, m, c, goldenIDs(g, name+"ids"), false)
		top := goldenIDs(g, name+"top5_ids")
		var got []int32
		var five []float32
		for i := range 48 {
			for _, id := range top[5*i : 5*i+5] {
				five = append(five, logits[id])
			}
			id := int32(testutil.Argmax(logits))
			got = append(got, id)
			logits = forward(t, m, c, []int32{id}, false)
		}
		if want := goldenIDs(g, name+"generated"); !slices.Equal(got, want) {
			t.Errorf("prompt %d: generated %v, want %v", p, got, want)
		}
		testutil.Close(t, name+"top5_logits", five, g.Floats(name+"top5_logits"), logitTol)
	}
}
