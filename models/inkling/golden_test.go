package inkling

import (
	"fmt"
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

// TestPrefillGolden compares every named result of a 100-token prefill with the
// reference, in the order of computation: the first failure is the cause.
func TestPrefillGolden(t *testing.T) {
	prefill := testutil.OpenGolden(t, random, "text_prefill")
	taps := testutil.OpenGolden(t, random, "text_taps")
	m := loadRandom(t)
	compared := map[string]bool{}
	prefillTaps(t, m, prefill, taps, binding.F32, func(key string, got, want []float32) {
		compared[key] = true
		tol := tapTol
		if key == "logits" {
			tol = logitTol
		}
		testutil.Close(t, key, got, want, tol)
	})

	var missing []string
	for _, g := range []*testutil.Golden{prefill, taps} {
		for _, name := range g.Names() {
			if !compared[name] {
				missing = append(missing, name)
			}
		}
	}
	// What is compared elsewhere, or is no result of the graph.
	want := []string{"input_ids"}
	for _, l := range []int{2, 5} {
		for _, n := range []string{"rel_bias", "router_indices", "router_weights", "shared_gammas"} {
			want = append(want, fmt.Sprintf("layer%d.%s", l, n))
		}
	}
	want = append(want, "log_scaling_tau")
	if newBackend(t).Device().Fuses() { // in one node with the sum and the next norm
		for _, l := range []int{2, 5} {
			want = append(want, fmt.Sprintf("layer%d.attn_sconv", l), fmt.Sprintf("layer%d.mlp_sconv", l))
		}
	}
	slices.Sort(missing)
	slices.Sort(want)
	if !slices.Equal(missing, want) {
		t.Errorf("not compared: %v, want only %v", missing, want)
	}
}

// TestPrefillGoldenHalf compares the same results with an f16 cache, in the mean:
// keys and values of 11 bits, in layers that all read the one before.
func TestPrefillGoldenHalf(t *testing.T) {
	prefill := testutil.OpenGolden(t, random, "text_prefill")
	taps := testutil.OpenGolden(t, random, "text_taps")
	m := loadRandom(t)
	prefillTaps(t, m, prefill, taps, binding.F16, func(key string, got, want []float32) {
		testutil.CloseMean(t, key, got, want, 2e-3)
		if key == "logits" {
			testutil.AgreeArgmax(t, key, got, want, m.Config().Vocab, 0.95)
		}
	})
}

// prefillTaps runs the reference's 100 tokens at once and calls compare with
// each named result that a golden has, and last with the logits of all rows.
func prefillTaps(t *testing.T, m *Model, prefill, taps *testutil.Golden, kv binding.DType, compare func(key string, got, want []float32)) {
	t.Helper()
	m.OnTap = func(name string, layer int, shape [4]int64, got []float32) {
		g, key := taps, fmt.Sprintf("layer%d.%s", layer, name)
		switch name {
		case "embed_norm", "final_norm":
			g, key = prefill, "hidden."+name
		case "layer":
			g, key = prefill, fmt.Sprintf("hidden.layer%d", layer)
		case "mlp_out":
			if m.w.Layers[layer].MoE != nil {
				key = fmt.Sprintf("layer%d.moe_out", layer)
			}
		case "router_logits":
			if g.Has(key) { // the reference lists the shared experts' elsewhere
				got = columns(got, int(shape[0]), 0, m.cfg.nExpert)
			}
		case "router_indices", "router_weights":
			return // TestRouterGolden compares them, in one order
		}
		if g.Has(key) {
			compare(key, got, g.Floats(key))
		}
	}
	logits := forward(t, m, newTestCache(t, m, 128, kv), goldenIDs(prefill, "input_ids"), true)
	compare("logits", logits, prefill.Floats("logits"))
}

// columns cuts columns first to first+n-1 out of rows of the given width.
func columns(x []float32, width, first, n int) []float32 {
	var out []float32
	for r := 0; r < len(x); r += width {
		out = append(out, x[r+first:r+first+n]...)
	}
	return out
}

// TestRouterGolden compares the choice and the weights of the experts, sorted by index.
func TestRouterGolden(t *testing.T) {
	prefill := testutil.OpenGolden(t, random, "text_prefill")
	taps := testutil.OpenGolden(t, random, "text_taps")
	m := loadRandom(t)
	ids, weights := map[int][]float32{}, map[int][]float32{}
	m.OnTap = func(name string, layer int, _ [4]int64, got []float32) {
		switch name {
		case "router_indices":
			ids[layer] = got
		case "router_weights":
			weights[layer] = got
		}
	}
	forward(t, m, newTestCache(t, m, 128, binding.F32), goldenIDs(prefill, "input_ids"), false)
	k, ns := m.cfg.nExpertUsed, m.cfg.nExpertShared
	for _, layer := range []int{2, 5} {
		key := fmt.Sprintf("layer%d.", layer)
		var gotIDs []int32
		var gotW []float32
		for r := range 100 {
			order := make([]int, k)
			for i := range order {
				order[i] = i
			}
			row := ids[layer][r*k : (r+1)*k]
			slices.SortFunc(order, func(a, b int) int { return int(row[a]) - int(row[b]) })
			for _, o := range order {
				gotIDs = append(gotIDs, int32(row[o]))
				gotW = append(gotW, weights[layer][r*(k+ns)+o])
			}
		}
		if want := goldenIDs(taps, key+"router_indices"); !slices.Equal(gotIDs, want) {
			t.Errorf("layer %d: experts %v, want %v", layer, gotIDs, want)
		}
		testutil.Close(t, key+"router_weights", gotW, taps.Floats(key+"router_weights"), tapTol)
		testutil.Close(t, key+"shared_gammas", columns(weights[layer], k+ns, k, ns), taps.Floats(key+"shared_gammas"), tapTol)
	}
	// The log scaling begins at position 24 of the fixture.
	tau := make([]float32, 100)
	for i := range tau {
		tau[i] = m.cfg.tau(i)
	}
	testutil.Close(t, "log_scaling_tau", tau, taps.Floats("log_scaling_tau"), testutil.Tol{Abs: 1e-6})
}

// TestDecodeGolden: single tokens behind a prefill, and a prefill in chunks.
func TestDecodeGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "text_decode")
	m := loadRandom(t)
	ids := goldenIDs(g, "input_ids")
	c := newTestCache(t, m, 128, binding.F32)
	forward(t, m, c, ids[:60], false)
	var got []float32
	for i := 60; i < 100; i++ {
		got = append(got, forward(t, m, c, ids[i:i+1], false)...)
	}
	testutil.Close(t, "decode_logits", got, g.Floats("decode_logits"), logitTol)

	c.Reset(0)
	got = nil
	for _, chunk := range [][2]int{{0, 17}, {17, 60}, {60, 100}} {
		got = append(got, forward(t, m, c, ids[chunk[0]:chunk[1]], false)...)
	}
	testutil.Close(t, "chunked_logits_last", got, g.Floats("chunked_logits_last"), logitTol)
}

// TestGreedyGolden generates 64 tokens from each of five prompts.
func TestGreedyGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "greedy")
	m := loadRandom(t)
	c := newTestCache(t, m, 256, binding.F32)
	for p := range 5 {
		c.Reset(0)
		logits := forward(t, m, c, goldenIDs(g, fmt.Sprintf("prompt%d.ids", p)), false)
		var got []int32
		for range 64 {
			id := int32(testutil.Argmax(logits))
			got = append(got, id)
			logits = forward(t, m, c, []int32{id}, false)
		}
		if want := goldenIDs(g, fmt.Sprintf("prompt%d.generated", p)); !slices.Equal(got, want) {
			t.Errorf("prompt %d: generated %v, want %v", p, got, want)
		}
	}
}
