package bench

import (
	"math"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestDrafts: steps with guesses make as many tokens as the rates promise, and
// their time is told by what it went to. A model without MTP guesses for nothing.
func TestDrafts(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config []string
		accept []float64
		tokens float64
	}{
		{"all right", []string{"inkling-tiny", "config.json"}, []float64{1}, 3},
		{"none right", []string{"inkling-tiny", "config.json"}, []float64{0}, 1},
		{"by rates", []string{"inkling-tiny", "config.json"}, []float64{0.8, 0.5}, 1 + 0.8 + 0.8*0.5},
		{"without MTP", []string{"kimi-tiny", "config.json"}, []float64{1}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := madeUpAhead(t, "q8_0", 2, tc.config...)
			rs, err := s.Run(t.Context(), Options{
				Generate: []int{120}, Depth: []int{20}, Parallel: []int{2}, Draft: []int{0, 2}, Accept: tc.accept, Repeat: 1, UBatch: 8, KV: binding.F16,
			}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(rs) != 2 || rs[0].Drafts != nil || rs[1].Drafts == nil || rs[1].Test != "tg120 @ d20 +2 x2" {
				t.Fatalf("%+v", rs)
			}
			d := rs[1].Drafts
			if math.Abs(d.Tokens-tc.tokens) > 0.3 || d.Verify <= 0 || d.Draft < 0 || d.Rollback <= 0 || rs[1].Mean <= 0 {
				t.Errorf("%+v, want %.2f tokens of a step", d, tc.tokens)
			}
		})
	}
}

func TestDraftsRefused(t *testing.T) {
	s := madeUpAhead(t, "q8_0", 2, "inkling-tiny", "config.json")
	for _, tc := range []struct {
		name string
		o    Options
		want string
	}{
		{"more than depths", Options{Draft: []int{3}, Accept: []float64{1}}, "has 2 depths"},
		{"no rates", Options{Draft: []int{1}}, "no rates"},
		{"rate", Options{Draft: []int{1}, Accept: []float64{2}}, "rate 2"},
	} {
		if _, err := s.Run(t.Context(), tc.o, 0); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}
