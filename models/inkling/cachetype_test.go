package inkling

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// evalTokens joins the prompts and answers of the evaluation set's text items.
func evalTokens(t testing.TB, n int) []int32 {
	t.Helper()
	f, err := os.Open(testutil.Testdata(t, "inkling-tiny-eval", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var ids []int32
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var item struct {
			Media     []string
			Prompt    []int32 `json:"prompt_token_ids"`
			Reference struct {
				IDs []int32 `json:"token_ids"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &item); err != nil {
			t.Fatal(err)
		}
		if len(item.Media) == 0 {
			ids = append(append(ids, item.Prompt...), item.Reference.IDs...)
		}
	}
	for len(ids) < n {
		ids = append(ids, ids...)
	}
	return ids[:n]
}

// TestCacheTypes: 4,096 tokens of the trained checkpoint, the last ones one by
// one, with each type of cache against float32: mean KL divergence of the
// predictions.
func TestCacheTypes(t *testing.T) {
	model, err := models.Open(openGGUF(t, tinyFiles(t).Model), models.Params{Backend: newBackend(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	m := model.(*Model)
	const n, single = 4096, 128
	ids := evalTokens(t, n)
	run := func(kv binding.DType) []float32 {
		c := newTestCache(t, m, n, kv)
		return append(chunked(t, m, c, 0, ids[:n-single], 512), chunked(t, m, c, 0, ids[n-single:], 1)...)
	}
	want := run(binding.F32)
	vocab := m.Config().Vocab
	for _, c := range []struct {
		kv   binding.DType
		most float64
	}{{binding.F16, 1e-4}, {binding.BF16, 1e-4}, {binding.Q8_0, 0.01}} {
		got := run(c.kv)
		prefill := meanKL(want[:(n-single)*vocab], got[:(n-single)*vocab], vocab)
		decode := meanKL(want[(n-single)*vocab:], got[(n-single)*vocab:], vocab)
		testutil.RecordValue(t, fmt.Sprintf("%s cache, prefill", c.kv), "mean KL", (n-single)*vocab, prefill, c.most)
		testutil.RecordValue(t, fmt.Sprintf("%s cache, decode", c.kv), "mean KL", single*vocab, decode, c.most)
		if !(prefill < c.most) || !(decode < c.most) {
			t.Errorf("%s: mean KL %.3g in prefill, %.3g in decode, want below %g", c.kv, prefill, decode, c.most)
		}
	}
}

// meanKL is the mean over rows of KL(softmax(p) || softmax(q)).
func meanKL(p, q []float32, width int) float64 {
	total := 0.0
	for r := 0; r < len(p); r += width {
		lp, lq := logSoftmax(p[r:r+width]), logSoftmax(q[r:r+width])
		for i := range lp {
			total += math.Exp(lp[i]) * (lp[i] - lq[i])
		}
	}
	return total / float64(len(p)/width)
}

func logSoftmax(x []float32) []float64 {
	top, sum := math.Inf(-1), 0.0
	for _, v := range x {
		top = max(top, float64(v))
	}
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v) - top - math.Log(sum)
	}
	return out
}
