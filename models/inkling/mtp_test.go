package inkling

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	"github.com/inkling-go/inkling/models"
)

// tinyFiles is the trained checkpoint in F32.
func tinyFiles(t testing.TB) tinymodel.Files {
	t.Helper()
	return tinymodel.Inkling.Files(t, convert.OutF32)
}

// loadTiny opens the trained checkpoint in F32 with so many of its depths.
func loadTiny(t testing.TB, depths int) *Model {
	t.Helper()
	p := models.Params{Backend: newBackend(t), NoMmap: true, MTPDepths: depths} // tests change weights
	if depths > 0 {
		p.MTP = openGGUF(t, tinyFiles(t).MTP)
	}
	m, err := models.Open(openGGUF(t, tinyFiles(t).Model), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m.(*Model)
}

func loadTinyTowers(t testing.TB) *Projector {
	t.Helper()
	p, err := models.OpenProjector(openGGUF(t, tinyFiles(t).MMProj), models.Params{Backend: newBackend(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p.(*Projector)
}

// evalItem is a question of the trained checkpoint's development set with what
// the reference answers, and what its depths propose at each token of that.
type evalItem struct {
	ID        string
	Prompt    []int32 `json:"prompt_token_ids"`
	Media     []string
	Reference struct {
		Tokens []int32 `json:"token_ids"`
	}
	Drafts [2][]int32 `json:"mtp_drafts"`

	rows []float32 // of the media
}

// readEval reads the set and encodes its media.
func readEval(t testing.TB) []evalItem {
	t.Helper()
	p := loadTinyTowers(t)
	f, err := os.Open(testutil.Testdata(t, "inkling-tiny-eval", "dev.jsonl"))
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
		for _, m := range it.Media {
			it.rows = append(it.rows, encodeEval(t, p, testutil.Testdata(t, "inkling-tiny-eval", filepath.FromSlash(m)))...)
		}
		items = append(items, it)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return items
}

func encodeEval(t testing.TB, p *Projector, path string) (rows []float32) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".wav") {
		a, err := media.DecodeAudio(context.Background(), path, data, media.AudioLimits{})
		if err == nil {
			rows, err = p.EncodeAudio(nil, a.Samples)
		}
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	im, err := media.DecodeImage(path, data, media.Limits{})
	if err == nil {
		rows, err = p.EncodeImage(nil, im)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// tokens are the prompt and the reference's answer.
func (it *evalItem) tokens() []int32 { return slices.Concat(it.Prompt, it.Reference.Tokens) }

// batch is rows from to to-1 of those.
func (it *evalItem) batch(from, to int) models.Batch {
	const imageSlot, audioSlot = 1264, 1263
	ids := it.tokens()
	b := models.Batch{Tokens: ids[from:to], Outputs: []int32{int32(to - from - 1)}}
	n := 0
	for r, id := range ids[:to] {
		if id != imageSlot && id != audioSlot {
			continue
		}
		if r >= from {
			b.MediaRows = append(b.MediaRows, int32(r-from))
			b.Media = append(b.Media, it.rows[n*256:(n+1)*256]...)
		}
		n++
	}
	return b
}

func feed(t testing.TB, m *Model, c models.Cache, bs ...models.Batch) {
	t.Helper()
	n := 0
	for _, b := range bs {
		n += len(b.Outputs)
	}
	if err := m.Forward(c, bs, models.Outputs{Hidden: make([]float32, n*m.Config().Embd)}); err != nil {
		t.Fatal(err)
	}
}

// follow feeds all tokens of an item at once and returns what every depth
// predicts from the prompt's last row on, as the reference does it.
// change, if not nil, alters what waits for the depths.
func follow(t testing.TB, m *Model, c models.Cache, it *evalItem, change func(*Model, *tail)) [][]int32 {
	t.Helper()
	s := c.(*mtpCache)
	ids := it.tokens()
	c.Reset(0)
	feed(t, m, c, it.batch(0, len(ids)))
	if change != nil {
		change(m, &s.tails[0])
	}
	output := make([]float32, 1268*256)
	m.w.Output.Floats(output)
	got := make([][]int32, len(m.mtp.w.Depths))
	m.mtp.onTap = func(name string, d int, shape [4]int64, values []float32) {
		if name != "mtp_hidden" {
			return
		}
		for r := range int(shape[1]) {
			id := int32(-1)
			if len(got[d]) >= len(it.Prompt)-1 {
				id = nearest(output, values[r*256:(r+1)*256])
			}
			got[d] = append(got[d], id)
		}
	}
	defer func() { m.mtp.onTap = nil }()
	if err := s.follow(0, 2, s.Pos(0)); err != nil {
		t.Fatal(err)
	}
	return got
}

// nearest is the row of table that has the largest product with x.
func nearest(table, x []float32) int32 {
	best, at := float32(0), int32(-1)
	for i := 0; i < len(table); i += len(x) {
		sum := float32(0)
		for j, v := range x {
			sum += v * table[i+j]
		}
		if at < 0 || sum > best {
			best, at = sum, int32(i/len(x))
		}
	}
	return at
}

// agreement counts the rows of an answer at which a depth predicts its token.
func (it *evalItem) agreement(got [][]int32) (right, all [2]int) {
	p := len(it.Prompt) - 1
	for d := range 2 {
		want := it.Reference.Tokens[1+d:]
		for i, id := range want {
			all[d]++
			if got[d][p+i] == id {
				right[d]++
			}
		}
	}
	return right, all
}

// TestMTPReference: fed with the reference's tokens every depth predicts exactly
// what the reference's depths do, which is nearly always the next token.
func TestMTPReference(t *testing.T) {
	m := loadTiny(t, 2)
	c := newTestCache(t, m, 1024, binding.F32)
	var right, all [2]int
	for _, it := range readEval(t) {
		got := follow(t, m, c, &it, nil)
		p := len(it.Prompt) - 1
		for d, want := range it.Drafts {
			if len(want) != len(it.Reference.Tokens)-1-d {
				t.Fatalf("item %s: %d drafts of depth %d for %d tokens", it.ID, len(want), d, len(it.Reference.Tokens))
			}
			if g := got[d][p : p+len(want)]; !slices.Equal(g, want) {
				t.Errorf("item %s: depth %d predicts %v, want %v", it.ID, d, g, want)
			}
		}
		r, a := it.agreement(got)
		for d := range 2 {
			right[d] += r[d]
			all[d] += a[d]
		}
	}
	for d := range 2 {
		if share := float64(right[d]) / float64(all[d]); share < 0.98 {
			t.Errorf("depth %d: %d of %d right, want 0.98", d, right[d], all[d])
		}
	}
	t.Logf("right: %v of %v", right, all)
}

// TestMTPMistakes: what is easily done wrong costs acceptance, so that the test
// above would show it.
func TestMTPMistakes(t *testing.T) {
	var items []evalItem
	for i, it := range readEval(t) {
		if i%6 == 0 {
			items = append(items, it)
		}
	}
	for _, tc := range []struct {
		name   string
		model  func(*Model)
		change func(m *Model, t *tail)
		least  [2]float64
		most   [2]float64
	}{
		{name: "right", least: [2]float64{0.98, 0.98}, most: [2]float64{1, 1}},
		{name: "halves swapped", model: swapHalves, most: [2]float64{0.1, 0.1}},
		{name: "unlike embedding", model: unlikeEmbedding, least: [2]float64{0.98, 0.98}, most: [2]float64{1, 1}},
		{name: "raw embedding", model: unlikeEmbedding, change: rawEmbedding, most: [2]float64{0.96, 0.98}},
		{name: "unlike final norm", model: unlikeFinalNorm, least: [2]float64{0.95, 0.97}, most: [2]float64{1, 1}},
		{name: "before the final norm", model: unlikeFinalNorm, change: beforeNorm, most: [2]float64{0.85, 0.96}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := loadTiny(t, 2)
			c := newTestCache(t, m, 1024, binding.F32)
			if tc.model != nil {
				tc.model(m)
			}
			var right, all [2]int
			for _, it := range items {
				r, a := it.agreement(follow(t, m, c, &it, tc.change))
				for d := range 2 {
					right[d] += r[d]
					all[d] += a[d]
				}
			}
			t.Logf("right: %v of %v", right, all)
			for d := range 2 {
				if share := float64(right[d]) / float64(all[d]); share < tc.least[d] || share > tc.most[d] {
					t.Errorf("depth %d: %d of %d right, want %.2f to %.2f", d, right[d], all[d], tc.least[d], tc.most[d])
				}
			}
		})
	}
}

// swapHalves exchanges the columns of the hidden state with those of the embedding.
func swapHalves(m *Model) {
	for _, d := range m.mtp.w.Depths {
		w, swapped := make([]float32, 512*256), make([]float32, 512*256)
		d.Proj.Floats(w)
		for r := 0; r < len(w); r += 512 {
			copy(swapped[r:], w[r+256:r+512])
			copy(swapped[r+256:], w[r:r+256])
		}
		d.Proj.SetFloats(swapped)
	}
}

// beforeNorm takes the final norm back: all but the length of a row, which the
// depth's own norm does not see.
func beforeNorm(m *Model, t *tail) {
	w := make([]float32, 256)
	m.w.Norm.Floats(w)
	for i := range t.depths[0].hidden {
		t.depths[0].hidden[i] /= w[i%256]
	}
}

// unlikeEmbedding gives the embedding's norm weights that differ from channel to
// channel and divides the embedding by them: the lengths of some rows change by
// some percent and nothing else. The checkpoint's own weights are 1, so that a norm
// more or less would not be seen.
func unlikeEmbedding(m *Model) {
	factors := [2]float32{0.72, 4} // the mean of their inverse squares is 1
	scaleChannels(m.w.EmbdNorm, factors)
	scaleChannels(m.w.Embd, inverse(factors))
}

// unlikeFinalNorm does so to the norm before the output, whose own weights are
// nearly alike.
func unlikeFinalNorm(m *Model) {
	factors := [2]float32{1.37, 0.36} // the mean of their squares is 1
	scaleChannels(m.w.Norm, factors)
	scaleChannels(m.w.Output, inverse(factors))
	scaleChannels(m.mtp.w.Depths[0].HNorm, inverse(factors))
}

func inverse(f [2]float32) [2]float32 { return [2]float32{1 / f[0], 1 / f[1]} }

// scaleChannels multiplies even and odd elements of the rows of t.
func scaleChannels(t *binding.Tensor, by [2]float32) {
	v := make([]float32, t.Elems())
	t.Floats(v)
	for i := range v {
		v[i] *= by[i%2]
	}
	t.SetFloats(v)
}

// rawEmbedding lets tokens skip the embedding's norm, as media do.
func rawEmbedding(m *Model, t *tail) {
	embd := make([]float32, 1280*256)
	m.w.Embd.Floats(embd)
	for r, id := range t.ids {
		if t.media[r] == nil {
			t.media[r] = embd[id*256 : (id+1)*256]
		}
	}
}
