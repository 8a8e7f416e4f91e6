package kimik25

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	"github.com/inkling-go/inkling/models"
)

// evalItem is a question of the trained checkpoint's development set with what
// the reference answers.
type evalItem struct {
	ID     string
	Prompt []int32 `json:"prompt_token_ids"`
	Media  []struct {
		Kind, Path string
		Layout     media.ClipLayout
		Grids      [][]int // [h, w] of a picture, [t, h, w] of each item of a clip
		Timestamps []*string
	} `json:"media_items"`
	Reference struct {
		Tokens []int32 `json:"token_ids"`
		Margin float64 `json:"min_top2_margin"`
	}
}

func readEval(t *testing.T) []evalItem {
	t.Helper()
	f, err := os.Open(testutil.Testdata(t, "kimi-tiny-eval", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var items []evalItem
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var it evalItem
		if err := json.Unmarshal(lines.Bytes(), &it); err != nil {
			t.Fatal(err)
		}
		items = append(items, it)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return items
}

// rows encodes the media of an item in order, and compares the grids and times
// on the way.
func (it *evalItem) rows(t *testing.T, p *Projector) (rows []float32) {
	t.Helper()
	add := func(r []float32, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r...)
	}
	for _, m := range it.Media {
		path := testutil.Testdata(t, "kimi-tiny-eval", filepath.FromSlash(m.Path))
		if m.Kind == "image" {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			im, err := media.DecodeImage(path, data, media.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			add(p.EncodeImage(nil, im))
			continue
		}
		rule := p.ClipRule()
		rule.Layout = m.Layout
		clip, err := media.DecodeVideo(context.Background(), path, media.VideoOptions{Sample: rule.Sampler(0)})
		if err != nil {
			t.Fatal(err)
		}
		parts, err := rule.Items(clip)
		if err != nil {
			t.Fatal(err)
		}
		var grids [][]int
		for i, part := range parts {
			var frames []*media.Image
			for _, im := range clip.Frames[part.First : part.First+part.N] {
				fitted, err := p.FitFrame(im, rule.Layout, part.N)
				if err != nil {
					t.Fatal(err)
				}
				frames = append(frames, fitted)
			}
			grids = append(grids, []int{part.N, frames[0].H / 14, frames[0].W / 14})
			if want := m.Timestamps[i]; want != nil && part.Time != *want || want == nil && part.Time != "" {
				t.Errorf("%s: time %q of item %d", it.ID, part.Time, i)
			}
			add(p.EncodeClip(nil, frames, rule.Layout))
		}
		if diff := cmp.Diff(m.Grids, grids); diff != "" {
			t.Errorf("%s: grids (-want +got):\n%s", it.ID, diff)
		}
	}
	return rows
}

// answer generates what follows the prompt, n tokens.
func (it *evalItem) answer(t *testing.T, m *Model, c models.Cache, rows []float32, n int) (ids []int32) {
	t.Helper()
	const mediaID = 1173
	b := models.Batch{Tokens: it.Prompt, Media: rows, Outputs: []int32{int32(len(it.Prompt) - 1)}}
	for r, id := range it.Prompt {
		if id == mediaID {
			b.MediaRows = append(b.MediaRows, int32(r))
		}
	}
	c.Reset(0)
	logits := make([]float32, m.Config().Vocab)
	if err := m.Forward(c, []models.Batch{b}, models.Outputs{Logits: logits}); err != nil {
		t.Fatalf("%s: %v", it.ID, err)
	}
	for range n {
		id := int32(testutil.Argmax(logits))
		ids = append(ids, id)
		logits = forward(t, m, c, []int32{id}, false)
	}
	return ids
}

// TestTrainedModel: a checkpoint that answers questions about pictures and
// clips says what the reference says, in both layouts. Where the reference
// itself is undecided (a margin below 1), another answer is no error.
func TestTrainedModel(t *testing.T) {
	for _, c := range []struct {
		outType string
		kv      binding.DType
		least   float64 // share of answers that have to be equal
	}{{"f32", binding.F32, 1}, {"q8_0", binding.F16, 0.95}} {
		t.Run(c.outType, func(t *testing.T) {
			if testing.Short() {
				t.Skip("84 answers take a while")
			}
			files := tinymodel.Kimi.Files(t, convert.OutType(c.outType))
			m, p := openModel(t, files.Model), openTower(t, files.MMProj, models.Params{})
			cache := newTestCache(t, m, 1, 1024, c.kv)
			sure, equal := 0, 0
			for _, it := range readEval(t) {
				got := it.answer(t, m, cache, it.rows(t, p), len(it.Reference.Tokens))
				if it.Reference.Margin <= 1 {
					continue
				}
				sure++
				if slices.Equal(got, it.Reference.Tokens) {
					equal++
				} else if c.least == 1 {
					t.Errorf("%s: %v, want %v", it.ID, got, it.Reference.Tokens)
				}
			}
			t.Logf("%d of %d answers equal", equal, sure)
			if sure < 80 || float64(equal) < c.least*float64(sure) {
				t.Errorf("%d of %d answers are the reference's, want %g of at least 80", equal, sure, c.least)
			}
		})
	}
}
