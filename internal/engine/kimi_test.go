package engine

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/kimik25"
	_ "github.com/inkling-go/inkling/models/kimik25"
)

// TestKimiDevSet answers the evaluation set of the trained Kimi checkpoint from
// its messages, in the layout that each item names. Where the reference itself
// is undecided (a margin of at most 1), another answer is no error.
func TestKimiDevSet(t *testing.T) {
	for _, c := range []struct {
		outType convert.OutType
		kv      binding.DType
		least   float64 // share of the answers that are the reference's
	}{{"f32", binding.F32, 1}, {"q8_0", binding.F16, 0.95}} {
		t.Run(string(c.outType), func(t *testing.T) {
			e := openModel(t, convertOnce(t, c.outType, "kimi-tiny"), c.kv)
			layouts := map[string]int{}
			sure, equal := 0, 0
			for _, it := range readSet(t, "kimi-tiny-eval") {
				layouts[it.VideoLayout]++
				res, err := e.Generate(context.Background(), it.request(t))
				if err != nil {
					t.Errorf("item %s: %v", it.ID, err)
					continue
				}
				if !slices.Equal(res.PromptIDs, it.PromptIDs) {
					t.Errorf("item %s (%s): prompt %q, want %q", it.ID, it.Task, e.Spell(res.PromptIDs), e.Spell(it.PromptIDs))
				}
				if it.Reference.Margin <= 1 {
					continue
				}
				sure++
				if slices.Equal(res.IDs, it.Reference.IDs) {
					equal++
				} else if c.least == 1 {
					t.Errorf("item %s (%s): answered %q, want %q", it.ID, it.Task, e.Spell(res.IDs), e.Spell(it.Reference.IDs))
				}
				if c.least == 1 {
					it.checkParsed(t, res)
				}
			}
			t.Logf("%d of %d answers are the reference's", equal, sure)
			if float64(equal) < c.least*float64(sure) {
				t.Errorf("%d of %d answers are the reference's, want %g of them", equal, sure, c.least)
			}
			if sure != 80 || layouts["clip"] < 15 || layouts["chunks"] < 20 {
				t.Errorf("%d sure items, want 80; layouts %v", sure, layouts)
			}
		})
	}
}

// checkParsed compares what the answer was taken apart into.
func (it *item) checkParsed(t *testing.T, res *Result) {
	t.Helper()
	want := it.Reference
	if res.Text != want.Content || res.Reasoning != want.Reasoning {
		t.Errorf("item %s (%s): text %q after %q, want %q after %q", it.ID, it.Task, res.Text, res.Reasoning, want.Content, want.Reasoning)
	}
	finish := FinishStop
	if want.ToolCall != nil {
		finish = FinishToolCalls
		if len(res.ToolCalls) != 1 {
			t.Errorf("item %s (%s): calls %v, want one", it.ID, it.Task, res.ToolCalls)
		} else if got := res.ToolCalls[0]; got.ID != want.ToolCall.ID || got.Name != want.ToolCall.Name || !sameJSON(t, got.Arguments, want.ToolCall.Arguments) {
			t.Errorf("item %s (%s): call %s %s %s, want %s %s %s", it.ID, it.Task,
				got.ID, got.Name, got.Arguments, want.ToolCall.ID, want.ToolCall.Name, want.ToolCall.Arguments)
		}
	}
	if res.FinishReason != finish || len(res.Warnings) > 0 {
		t.Errorf("item %s (%s): finish reason %q, want %q; warnings %q", it.ID, it.Task, res.FinishReason, finish, res.Warnings)
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	for _, err := range []error{json.Unmarshal(a, &x), json.Unmarshal(b, &y)} {
		if err != nil {
			t.Error(err)
		}
	}
	return reflect.DeepEqual(x, y)
}
