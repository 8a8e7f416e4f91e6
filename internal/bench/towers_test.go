package bench

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/tinymodel"
)

// TestTowers: each tower has a line, and its time is compared with that of a prompt of as
// many tokens, which is measured once even if it was asked for.
func TestTowers(t *testing.T) {
	random := tinymodel.InklingRandom.Files(t, "f32")
	inkling := headers(t, "q8_0", "inkling-tiny-random", "original", "config.json")
	kimi := headers(t, "q8_0", "kimi-tiny", "config.json")
	for _, tc := range []struct {
		name   string
		path   string
		l      Loading
		prompt []int
		want   []string       // tests in order
		rows   map[string]int // of those that are media
	}{
		{"checkpoint", random.Model, Loading{MMProj: random.MMProj}, nil, []string{"pp100", "pp1200", "image100", "audio60s"}, map[string]int{"image100": 100, "audio60s": 1200}},
		{"made up", inkling[convert.Text], Loading{MMProj: inkling[convert.MMProj], MakeUp: true}, []int{100, 3}, []string{"pp100", "pp3", "pp1200", "image100", "audio60s"}, map[string]int{"image100": 100, "audio60s": 1200}},
		{"no sound", kimi[convert.Text], Loading{MMProj: kimi[convert.MMProj], MakeUp: true}, nil, []string{"pp100", "image100"}, map[string]int{"image100": 100}},
		{"not asked for", random.Model, Loading{}, []int{3}, []string{"pp3"}, map[string]int{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := opened(t, tc.path, tc.l)
			var told []string
			o := Options{Prompt: tc.prompt, Depth: []int{0}, Parallel: []int{1}, Repeat: 2, UBatch: 512, KV: binding.F16, Progress: func(test string, n, of int) {
				if n != len(told) || of != len(tc.want) {
					t.Errorf("%s is %d of %d", test, n, of)
				}
				told = append(told, test)
			}}
			rs, err := s.Run(t.Context(), o, 0)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			rows, speed := map[string]int{}, map[int]float64{}
			for _, r := range rs {
				got = append(got, r.Test)
				if len(r.Samples) != 2 || r.Mean <= 0 || r.Nodes == 0 || r.Splits != 1 {
					t.Errorf("%+v", r)
				}
				if r.Tower == nil {
					speed[r.Prompt] = r.Mean
					continue
				}
				rows[r.Test] = r.Tower.Rows
				// as many rows: times are as speeds, turned round
				if want := speed[r.Tower.Rows] / r.Mean; r.Prompt != 0 || want == 0 || math.Abs(r.Tower.OfPrefill-want) > 1e-9*want {
					t.Errorf("%s: %+v, want %g of the prompt", r.Test, *r.Tower, want)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("tests (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.want, told); d != "" {
				t.Errorf("progress (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.rows, rows); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
		})
	}
}

func TestTowersRefused(t *testing.T) {
	random := tinymodel.InklingRandom.Files(t, "f32")
	kimi := headers(t, "q8_0", "kimi-tiny", "config.json")
	tiny := tinymodel.Inkling.Files(t, "f32")
	for _, tc := range []struct{ name, mmproj, want string }{
		{"another family", kimi[convert.MMProj], `is a projector for models of architecture "deepseek2"`},
		{"another width", tiny.MMProj, "the two files are of different models"},
		{"no projector", random.Model, "is not a projector"},
	} {
		if s, err := Open(random.Model, Loading{Threads: 1, UBatch: 8, KV: binding.F16, MMProj: tc.mmproj}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, error %v, want %q", tc.name, s, err, tc.want)
		}
	}
	s := opened(t, random.Model, Loading{MMProj: random.MMProj})
	ctx, cancel := context.WithCancel(t.Context())
	o := Options{Depth: []int{0}, Parallel: []int{1}, Repeat: 1, UBatch: 512, KV: binding.F16, Progress: func(test string, _, _ int) {
		if test == "image100" {
			cancel()
		}
	}}
	if _, err := s.Run(ctx, o, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}
