package inkling

import (
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// TestHiddenGolden: the rows after the final norm, alone and beside logits, and
// of steps that are computed one after another.
func TestHiddenGolden(t *testing.T) {
	g := testutil.OpenGolden(t, random, "text_prefill")
	m := loadRandom(t)
	ids := goldenIDs(g, "input_ids")
	embd, vocab := m.Config().Embd, m.Config().Vocab
	want := g.Floats("hidden.final_norm")

	out := models.Outputs{Hidden: make([]float32, len(ids)*embd)}
	if err := m.Forward(newTestCache(t, m, 128, binding.F32), []models.Batch{seqBatch(0, ids)}, out); err != nil {
		t.Fatal(err)
	}
	testutil.Close(t, "hidden", out.Hidden, want, tapTol)

	c, err := m.NewCache(2, 128, binding.F32)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	out = models.Outputs{Hidden: make([]float32, 2*embd), Logits: make([]float32, 2*vocab)}
	bs := []models.Batch{
		{Seq: 1, Tokens: ids, Outputs: []int32{99}},
		{Seq: 0, Tokens: ids[:40], Outputs: []int32{39}},
	}
	if err := m.Forward(c, bs, out); err != nil {
		t.Fatal(err)
	}
	testutil.Close(t, "hidden of two", out.Hidden, slices.Concat(want[99*embd:], want[39*embd:40*embd]), tapTol)
	logits := g.Floats("logits")
	testutil.Close(t, "logits of two", out.Logits, slices.Concat(logits[99*vocab:], logits[39*vocab:40*vocab]), logitTol)
}

func TestOutputsErrors(t *testing.T) {
	m := loadRandom(t)
	c := newTestCache(t, m, 16, binding.F32)
	for _, tc := range []struct {
		name string
		out  models.Outputs
		want string
	}{
		{"nothing", models.Outputs{}, "without results"},
		{"logits", models.Outputs{Logits: make([]float32, 3)}, "room for 3 logits"},
		{"hidden", models.Outputs{Hidden: make([]float32, m.Config().Embd+1)}, "hidden rows, want"},
	} {
		err := m.Forward(c, []models.Batch{{Tokens: []int32{1}, Outputs: []int32{0}}}, tc.out)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}
