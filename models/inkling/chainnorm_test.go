package inkling

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// chained writes the trained checkpoint's depths with a norm between them, as a
// configuration with chain_hidden_post_norm has it, and with weights of norms and
// convolutions that are far from the trained ones, which are nearly alike.
func chained(t testing.TB) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 1))
	norm := testutil.Tensor{Name: "nextn_chain_norm.weight", Dims: []int64{256}}
	for range 256 {
		norm.Values = append(norm.Values, 0.3+1.5*rng.Float32())
	}
	return testutil.Rewrite(t, tinyFiles(t).MTP, map[string]any{prefix + "nextn_chain_norm": true}, func(x testutil.Tensor) []testutil.Tensor {
		if strings.Contains(x.Name, "norm.weight") || strings.Contains(x.Name, "shortconv") {
			for i := range x.Values {
				x.Values[i] = x.Values[i]*(0.5+rng.Float32()) + 0.1*rng.Float32()
			}
		}
		if x.Name == "blk.1.nextn.eh_proj.weight" {
			return []testutil.Tensor{x, norm}
		}
		return []testutil.Tensor{x}
	})
}

// TestChainNorm: with a norm between the depths, before the output as well, every row
// of every depth is what the formulas say, and so are the guesses.
func TestChainNorm(t *testing.T) {
	path := chained(t)
	text := openGGUF(t, tinyFiles(t).Model)
	opened, err := models.Open(text, models.Params{Backend: newBackend(t), MTP: openGGUF(t, path), MTPDepths: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	m := opened.(*Model)
	c := newTestCache(t, m, 64, binding.F32)
	s := c.(*mtpCache)
	const n = 30
	ids := tokens(n+1, 4)
	feed(t, m, c, models.Batch{Tokens: ids[:n], Outputs: []int32{n - 1}})
	hidden := make(rows, n)
	for r := range hidden {
		for _, v := range s.tails[0].depths[0].hidden[r*256 : (r+1)*256] {
			hidden[r] = append(hidden[r], float64(v))
		}
	}

	got := make([][]float32, 2)
	m.mtp.onTap = func(name string, d int, shape [4]int64, values []float32) {
		if name == "mtp_hidden" {
			got[d] = append(got[d], values...)
		}
	}
	if err := m.Follow(c, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.follow(0, 2, n); err != nil {
		t.Fatal(err)
	}
	m.mtp.onTap = nil

	p := &plainDepths{t, text, openGGUF(t, path)}
	known := slices.Clone(ids)
	g := hidden
	var want []int32
	for d := range 2 {
		g = p.depth(d, g, p.embed(known[d+1:d+1+n]))
		var flat []float32
		for _, row := range g[:n-1-d] { // those behind wait for tokens
			for _, v := range row {
				flat = append(flat, float32(v))
			}
		}
		testutil.Close(t, "depth", got[d][:len(flat)], flat, testutil.Tol{Abs: 1e-4, Rel: 1e-4})
		want = append(want, p.likeliest(g[n-1]))
		known = append(known, want[d])
	}
	if got := guess(t, m, c, 0, ids, 2); !slices.Equal(got, want) {
		t.Errorf("guesses %v, want %v", got, want)
	}
}
