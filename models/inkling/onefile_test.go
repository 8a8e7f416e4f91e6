package inkling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

func oneFile(t testing.TB) string {
	t.Helper()
	return testutil.OneFile(t, tinyFiles(t).Model, tinyFiles(t).MTP)
}

// TestOneFile: depths in the model's own file guess what those in a file beside it
// do, as many of them as are wanted; without them the model is as it was.
func TestOneFile(t *testing.T) {
	path := oneFile(t)
	items := readEval(t)
	for depths := range 3 {
		t.Run(fmt.Sprint(depths, " depths"), func(t *testing.T) {
			opened, err := models.Open(openGGUF(t, path), models.Params{Backend: newBackend(t), MTPDepths: depths})
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			m, want := opened.(*Model), loadTiny(t, depths)
			if m.MaxDraft() != depths || m.Config() != want.Config() || m.WeightBytes() != want.WeightBytes() {
				t.Errorf("%d depths, %+v, %d bytes, want %d, %+v, %d", m.MaxDraft(), m.Config(), m.WeightBytes(), depths, want.Config(), want.WeightBytes())
			}
			for i := 0; i < len(items); i += 40 {
				it := &items[i]
				c, d := newTestCache(t, m, 1024, binding.F32), newTestCache(t, want, 1024, binding.F32)
				p, ids := len(it.Prompt), it.tokens()
				feed(t, m, c, it.batch(0, p))
				feed(t, want, d, it.batch(0, p))
				for k := range min(8, len(it.Reference.Tokens)) {
					if depths > 0 {
						if got, want := guess(t, m, c, 0, ids[:p+k+1], depths), guess(t, want, d, 0, ids[:p+k+1], depths); !slices.Equal(got, want) {
							t.Errorf("item %s, token %d: guesses %v, want %v", it.ID, k, got, want)
						}
					}
					next := ids[p+k : p+k+1]
					testutil.Close(t, "logits", forward(t, m, c, next, false), forward(t, want, d, next, false), testutil.Tol{})
				}
			}
		})
	}
}

// TestOneFileRefused: such a file with less or more than it says.
func TestOneFileRefused(t *testing.T) {
	path := oneFile(t)
	without := func(name string) func(testutil.Tensor) []testutil.Tensor {
		return func(x testutil.Tensor) []testutil.Tensor {
			if x.Name == name {
				return nil
			}
			return []testutil.Tensor{x}
		}
	}
	text := openGGUF(t, tinyFiles(t).Model)
	blocks, err := text.Int(prefix + "block_count")
	if err != nil {
		t.Fatal(err)
	}
	name := func(depth int, tensor string) string { return fmt.Sprintf("blk.%d.%s", int(blocks)+depth, tensor) }
	for _, tc := range []foreign{
		{"another number", map[string]any{prefix + "nextn_predict_layers": uint32(1)}, nil, "nextn_predict_layers\": 1, but 2 blocks"},
		{"no number", map[string]any{prefix + "nextn_predict_layers": nil}, nil, "nextn_predict_layers\": 0, but 2 blocks"},
		{"a norm is missing", nil, without(name(1, "nextn.enorm.weight")), name(1, "nextn.enorm.weight")},
		{"a head of their own", nil, with(name(1, "nextn.enorm.weight"), testutil.Tensor{
			Name: name(1, "nextn.shared_head_norm.weight"), Dims: []int64{8}, Values: make([]float32, 8),
		}), name(1, "nextn.shared_head_norm.weight") + "\" is not part"},
		{"a norm between depths that no key tells of", nil, with(name(1, "nextn.enorm.weight"), testutil.Tensor{
			Name: "nextn_chain_norm.weight", Dims: []int64{256}, Values: make([]float32, 256),
		}), "nextn_chain_norm is false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := openGGUF(t, testutil.Rewrite(t, path, tc.keys, tc.change))
			m, err := models.Open(f, models.Params{Backend: newBackend(t), MTPDepths: 2})
			if err == nil {
				m.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
