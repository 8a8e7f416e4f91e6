package inkling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
	"github.com/inkling-go/inkling/internal/gguf"
)

// TestPartialTowers converts checkpoints that lack one tower or both.
func TestPartialTowers(t *testing.T) {
	const alone = "the checkpoint has no towers: there is no mmproj file"
	const noPictures = "config.json has a vision_config but the checkpoint has no image tower: no pictures"
	const noSound = "config.json has an audio_config but the checkpoint has no audio tower: no sound"
	textOnly := func(modelType string) func(c *checkpointtest.Checkpoint) {
		return func(c *checkpointtest.Checkpoint) {
			c.Remove("model.visual.", "model.audio.")
			c.Config = c.Section("text_config")
			c.Config["model_type"] = modelType
		}
	}
	for _, tc := range []struct {
		name            string
		edit            func(c *checkpointtest.Checkpoint)
		pictures, sound bool
		notes           []string // besides the one on multi-token prediction
	}{
		{"both", func(*checkpointtest.Checkpoint) {}, true, true, nil},
		{"no image tensors", func(c *checkpointtest.Checkpoint) { c.Remove("model.visual.") }, false, true, []string{noPictures}},
		{"no audio tensors", func(c *checkpointtest.Checkpoint) { c.Remove("model.audio.") }, true, false, []string{noSound}},
		{"no image tower", func(c *checkpointtest.Checkpoint) {
			c.Remove("model.visual.")
			delete(c.Config, "vision_config")
		}, false, true, nil},
		{"no audio tower", func(c *checkpointtest.Checkpoint) {
			c.Remove("model.audio.")
			c.Config["audio_config"] = nil
		}, true, false, nil},
		{"no tower tensors", func(c *checkpointtest.Checkpoint) { c.Remove("model.visual.", "model.audio.") }, false, false, []string{noPictures, noSound, alone}},
		{"text config at the top", textOnly("inkling_text"), false, false, []string{alone}},
		{"text config at the top, short type", textOnly("inkling"), false, false, []string{alone}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			tc.edit(c)
			files, report := converttest.Run(t, c.Write(t), convert.OutAuto)
			notes := slices.DeleteFunc(report.Notes, func(s string) bool {
				return strings.HasPrefix(s, "the layers for multi-token prediction (40 tensors) are left out")
			})
			if diff := cmp.Diff(tc.notes, notes, cmp.Transformer("", func(s []string) string { return fmt.Sprint(s) })); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			has := func(kind convert.Kind, key string) bool {
				f, ok := files[kind]
				if !ok {
					return false
				}
				_, ok = f.Value(key)
				return ok
			}
			for _, key := range []string{"clip.vision.projector_type", "clip.vision.image_mean"} {
				if has(convert.MMProj, key) != tc.pictures {
					t.Errorf("mmproj has %s: %v, want %v", key, !tc.pictures, tc.pictures)
				}
			}
			if has(convert.MMProj, "clip.audio.projector_type") != tc.sound {
				t.Errorf("mmproj has an audio projector: %v, want %v", !tc.sound, tc.sound)
			}
			if has(convert.Text, "inkling.image_token_id") != tc.pictures || has(convert.Text, "inkling.audio_token_id") != tc.sound {
				t.Error("placeholder ids are not those of the towers that are there")
			}
			if f := files[convert.MMProj]; f != nil {
				for key, want := range map[string]bool{"clip.has_vision_encoder": tc.pictures, "clip.has_audio_encoder": tc.sound} {
					if got, err := f.Bool(key); got != want || err != nil {
						t.Errorf("%s is %v (%v), want %v", key, got, err, want)
					}
				}
			} else if tc.pictures || tc.sound {
				t.Error("no mmproj file")
			}
		})
	}
}

// TestTowerDepth is trap 17: image towers of any depth, with the widths of the
// golden plans (see internal/hmlp), whether the config gives the depth or not.
func TestTowerDepth(t *testing.T) {
	const h = 128
	for depth, shapes := range [][][2]int64{
		1: {{h, 9600}},
		2: {{320, 300}, {h, 10240}},
		3: {{128, 75}, {1216, 2048}, {h, 9728}},
		4: {{128, 75}, {320, 512}, {4800, 5120}, {h, 9600}},
		5: {{128, 75}, {320, 512}, {1216, 1280}, {4800, 4864}, {h, 9600}},
		6: {{3, 3}, {128, 75}, {320, 512}, {1216, 1280}, {4800, 4864}, {h, 9600}},
	} {
		if depth == 0 {
			continue
		}
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			c := checkpointtest.Load(t, tinyRandom)
			c.Remove("model.visual.layers.")
			var want []gguf.TensorInfo
			for i, s := range shapes {
				c.Add(fmt.Sprintf("model.visual.layers.linear_%d.weight", i), s[0], s[1])
				want = append(want, gguf.TensorInfo{Name: fmt.Sprintf("v.hmlp.%d.linear.weight", i), Dims: []int64{s[1], s[0]}})
				if i < depth-1 {
					c.Add(fmt.Sprintf("model.visual.layers.norm_%d.weight", i), s[0])
					want = append(want, gguf.TensorInfo{Name: fmt.Sprintf("v.hmlp.%d.norm.weight", i), Dims: s[:1]})
				}
			}
			want = append(want, gguf.TensorInfo{Name: "v.hmlp.final_norm.weight", Dims: []int64{h}})
			c.Section("vision_config")["n_layers"] = depth
			if depth%2 == 0 { // as the port saves it
				delete(c.Section("vision_config"), "n_layers")
				c.Section("vision_config")["num_hidden_layers"] = 24
			}
			files, _ := converttest.Run(t, c.Write(t), convert.OutAuto)
			f := files[convert.MMProj]
			var got []gguf.TensorInfo
			for _, x := range f.Tensors()[:len(want)] {
				got = append(got, gguf.TensorInfo{Name: x.Name, Dims: x.Dims})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("tensors (-want +got):\n%s", diff)
			}
			if n, err := f.Uint("clip.vision.block_count"); n != uint64(depth) {
				t.Errorf("block_count %d (%v), want %d", n, err, depth)
			}
		})
	}
}
