package kimik25

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/models"
)

// interleave undoes the order of the rows of q or k in files of kind kimik25:
// columns' pairs and rows' pairs alternate again, as published.
func interleave(rows []float32, width, heads int) []float32 {
	dh := len(rows) / width / heads
	out := make([]float32, len(rows))
	for h := range heads {
		for j := range dh / 4 {
			for axis := range 2 {
				for c := range 2 {
					from, to := h*dh+axis*dh/2+2*j+c, h*dh+4*j+2*axis+c
					copy(out[to*width:(to+1)*width], rows[from*width:])
				}
			}
		}
	}
	return out
}

// TestKimiVLTwin: the same weights as a file of kind kimivl, with q, k and v
// apart and in the published order, give the same rows of pictures and clips.
func TestKimiVLTwin(t *testing.T) {
	keys := map[string]any{"clip.projector_type": "kimivl", "kimi.video.layout": nil, "kimi.image.pad_input": true}
	twin := testutil.Rewrite(t, randomFiles(t).MMProj, keys, func(x testutil.Tensor) []testutil.Tensor {
		before, after, joint := strings.Cut(x.Name, "attn_qkv.")
		if !joint {
			if x.Name == "v.position_embd.weight" {
				x.Dims = []int64{144, 64}
			}
			return []testutil.Tensor{x}
		}
		third, width := len(x.Values)/3, 1
		dims := slices.Clone(x.Dims)
		dims[len(dims)-1] /= 3
		if len(dims) == 2 {
			width = int(dims[0])
		}
		var out []testutil.Tensor
		for i, part := range []string{"q", "k", "v"} {
			values := x.Values[i*third : (i+1)*third]
			if part != "v" {
				values = interleave(values, width, 4)
			}
			out = append(out, testutil.Tensor{Name: before + "attn_" + part + "." + after, Dims: dims, Values: values})
		}
		return out
	})
	p := openTower(t, twin, models.Params{})
	if l := p.ClipRule().Layout; l != media.LayoutClip {
		t.Errorf("layout %q, want clip", l)
	}
	images := testutil.OpenGolden(t, random, "images")
	for name, file := range map[string]string{"image0.features": "image0_84x112.png", "image1.features": "image1_150x75.png"} {
		got, err := p.EncodeImage(nil, readImage(t, file))
		if err != nil {
			t.Fatal(err)
		}
		testutil.Close(t, name, got, images.Floats(name), tapTol)
	}
	got, err := p.EncodeClip(nil, clipFrames(t, p, 6, media.LayoutClip), media.LayoutClip)
	if err != nil {
		t.Fatal(err)
	}
	testutil.Close(t, "clip", got, testutil.OpenGolden(t, random, "video_spec").Floats("t6_one_clip.features"), tapTol)
}

// TestDirectQueries: a file without query latent and without YaRN, as Kimi-VL's
// text models are. Queries are one product, scores are scaled by 1/√48.
func TestDirectQueries(t *testing.T) {
	const embd, q = 128, 4 * 48
	w := testutil.Uniform(testutil.Rand(t), embd*q, -0.1, 0.1)
	keys := map[string]any{prefix + "attention.q_lora_rank": nil, prefix + "rope.scaling.type": nil}
	path := testutil.Rewrite(t, randomFiles(t).Model, keys, func(x testutil.Tensor) []testutil.Tensor {
		switch {
		case strings.HasSuffix(x.Name, "attn_q_a.weight"):
			return []testutil.Tensor{{Name: strings.Replace(x.Name, "q_a", "q", 1), Dims: []int64{embd, q}, Values: w}}
		case strings.Contains(x.Name, "attn_q_"):
			return nil
		}
		return []testutil.Tensor{x}
	})
	m := openModel(t, path)
	if got, want := m.cfg.rotation.scale(48), float32(1/math.Sqrt(48)); got != want {
		t.Errorf("score scale %v, want %v", got, want)
	}
	if inv := m.cfg.rotation.inverseFrequencies(16); inv[0] != 1 || math.Abs(float64(inv[4])-math.Sqrt(50000)) > 1e-4 {
		t.Errorf("inverse frequencies %v, want 50000^(i/8)", inv)
	}
	taps := map[string][]float32{}
	m.OnTap = func(name string, layer int, _ [4]int64, got []float32) {
		if layer == 0 {
			taps[name] = got
		}
	}
	ids := prompt(t)[:5]
	c := newTestCache(t, m, 1, 64, binding.F32)
	whole := forward(t, m, c, ids, false)
	var want []float32
	for r := range ids {
		for o := range q {
			sum := 0.0
			for i := range embd {
				sum += float64(w[o*embd+i]) * float64(taps["attn_in"][r*embd+i])
			}
			want = append(want, float32(sum))
		}
	}
	testutil.Close(t, "queries", taps["q_b"], want, testutil.Tol{Abs: 1e-5})
	m.OnTap = nil
	c.Reset(0)
	forward(t, m, c, ids[:2], false)
	testutil.Close(t, "logits in two steps", forward(t, m, c, ids[2:], false), whole, same)
}

// TestGroups: with groups of experts, none outside of a token's best groups is
// chosen, in contrast to the same weights without groups.
func TestGroups(t *testing.T) {
	keys := map[string]any{prefix + "expert_group_count": uint32(4), prefix + "expert_group_used_count": uint32(2)}
	m := openModel(t, testutil.Rewrite(t, randomFiles(t).Model, keys, nil))
	bias := make([]float32, 8)
	m.w.Layers[1].MoE.Bias.Floats(bias)
	logits, ids := []float32(nil), []float32(nil)
	m.OnTap = func(name string, layer int, _ [4]int64, got []float32) {
		switch {
		case layer == 1 && name == "router_logits":
			logits = got
		case layer == 1 && name == "router_indices":
			ids = got
		}
	}
	forward(t, m, newTestCache(t, m, 1, 64, binding.F32), prompt(t), false)
	changed := 0
	for r := range 64 {
		choice := make([]float64, 8)
		group := make([]float64, 4) // of two experts each: both count
		for e := range choice {
			choice[e] = 1/(1+math.Exp(-float64(logits[8*r+e]))) + float64(bias[e])
			group[e/2] += choice[e]
		}
		rank := func(x []float64, i int) (n int) {
			for _, v := range x {
				if v > x[i] {
					n++
				}
			}
			return n
		}
		for _, e := range ids[3*r : 3*r+3] {
			if rank(group, int(e)/2) >= 2 {
				t.Errorf("token %d: expert %v of group %d, which is not among the best two of %v", r, e, int(e)/2, group)
			}
			if rank(choice, int(e)) >= 3 {
				changed++
			}
		}
	}
	if changed == 0 {
		t.Error("groups made no difference")
	}
}

// TestFileErrors: keys and tensors that make no sense are refused with the name
// of the file and the key.
func TestFileErrors(t *testing.T) {
	text, tower := randomFiles(t).Model, randomFiles(t).MMProj
	for _, c := range []struct {
		name  string
		file  string
		key   string
		value any
		want  string
	}{
		{"no layers", text, prefix + "block_count", uint32(0), "want at least 1"},
		{"too many layers", text, prefix + "block_count", uint32(5000), "want at most 4096"},
		{"missing", text, prefix + "attention.kv_lora_rank", nil, "kv_lora_rank"},
		{"key length", text, prefix + "attention.key_length", uint32(64), "kv_lora_rank + rope.dimension_count = 80"},
		{"value length", text, prefix + "attention.value_length", uint32(80), "want attention.kv_lora_rank 64"},
		{"odd rotation", text, prefix + "rope.dimension_count", uint32(15), "want an even number"},
		{"scaling", text, prefix + "rope.scaling.type", "linear", "want yarn or none"},
		{"yarn without factor", text, prefix + "rope.scaling.factor", nil, "rope.scaling.factor"},
		{"dense", text, prefix + "leading_dense_block_count", uint32(9), "9 of 4 layers"},
		{"gating", text, prefix + "expert_gating_func", uint32(3), "want 1 (softmax) or 2 (sigmoid)"},
		{"used experts", text, prefix + "expert_used_count", uint32(9), "9 of 8 experts"},
		{"groups", text, prefix + "expert_group_count", uint32(3), "does not divide"},
		{"used groups", text, prefix + "expert_group_used_count", uint32(2), "2 of 1 groups"},
		{"shape", text, prefix + "embedding_length", uint32(64), "shape"},
		{"merge", tower, "clip.vision.projector.scale_factor", uint32(3), "want 2"},
		{"heads", tower, "clip.vision.attention.head_count", uint32(5), "multiple of 4 for each of 5 heads"},
		{"blocks", tower, "clip.vision.block_count", uint32(1 << 20), "want at most 4096"},
		{"budget", tower, "clip.vision.image_max_pixels", uint32(100), "less than a patch"},
		{"std", tower, "clip.vision.image_std", []float32{1}, "1 values, want 3"},
		{"layout", tower, "kimi.video.layout", "film", "want clip or chunks"},
		{"chunk", tower, "kimi.video.frames_per_chunk", uint32(5), "vision.pos_emb_time is 4"},
		{"time", tower, "kimi.video.timestamp_mode", "ss", "timestamps"},
		{"type", tower, "clip.vision.block_count", "three", "block_count"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := openGGUF(t, testutil.Rewrite(t, c.file, map[string]any{c.key: c.value}, nil))
			var err error
			if c.file == text {
				_, err = models.Open(f, models.Params{Backend: newBackend(t)})
			} else {
				_, err = models.OpenProjector(f, models.Params{Backend: newBackend(t)})
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), f.Path()) {
				t.Errorf("error %v, want %q and the file", err, c.want)
			}
		})
	}
}

// TestLatentNormEpsilon: the norms of the latents have an epsilon of their own,
// which shows where latents are small.
func TestLatentNormEpsilon(t *testing.T) {
	for _, c := range []struct {
		name string
		key  any
		eps  float64
	}{{"of the published code", nil, 1e-6}, {"of the file", float32(1e-4), 1e-4}} {
		t.Run(c.name, func(t *testing.T) {
			keys := map[string]any{prefix + "attention.latent_norm_rms_epsilon": c.key}
			m := openModel(t, testutil.Rewrite(t, randomFiles(t).Model, keys, func(x testutil.Tensor) []testutil.Tensor {
				if strings.HasSuffix(x.Name, "attn_kv_a_mqa.weight") {
					for i := range x.Values {
						x.Values[i] *= 1e-3
					}
				}
				return []testutil.Tensor{x}
			}))
			w := make([]float32, 64)
			m.w.Layers[0].KVANorm.Floats(w)
			taps := map[string][]float32{}
			m.OnTap = func(name string, layer int, _ [4]int64, got []float32) {
				if layer == 0 {
					taps[name] = got
				}
			}
			forward(t, m, newTestCache(t, m, 1, 64, binding.F32), prompt(t)[:3], false)
			var want []float32
			for r := range 3 {
				row := taps["kv_a"][80*r : 80*r+64]
				sum := 0.0
				for _, v := range row {
					sum += float64(v) * float64(v)
				}
				for i, v := range row {
					want = append(want, float32(float64(v)/math.Sqrt(sum/64+c.eps))*w[i])
				}
			}
			testutil.Close(t, "kv_a_norm", taps["kv_a_norm"], want, testutil.Tol{Abs: 1e-5})
		})
	}
}

// TestQuantisedCache: rows of whole blocks can be held in q8_0, in few and many rows.
func TestQuantisedCache(t *testing.T) {
	rng := testutil.Rand(t)
	keys := map[string]any{ // a rotated part of 32 of the 48 elements of a key instead of 16
		prefix + "rope.dimension_count": uint32(32), prefix + "attention.key_length": uint32(96),
	}
	m := openModel(t, testutil.Rewrite(t, randomFiles(t).Model, keys, func(x testutil.Tensor) []testutil.Tensor {
		switch {
		case strings.HasSuffix(x.Name, "attn_kv_a_mqa.weight"):
			return []testutil.Tensor{{Name: x.Name, Dims: []int64{128, 96}, Values: testutil.Uniform(rng, 128*96, -0.1, 0.1)}}
		case strings.HasSuffix(x.Name, "attn_k_b.weight"):
			return []testutil.Tensor{{Name: x.Name, Dims: []int64{16, 64, 4}, Values: testutil.Uniform(rng, 16*64*4, -0.1, 0.1)}}
		}
		return []testutil.Tensor{x}
	}))
	ids := prompt(t)
	run := func(kv binding.DType) (many, one []float32) {
		c := newTestCache(t, m, 1, 64, kv)
		many = forward(t, m, c, ids[:60], false)
		return many, forward(t, m, c, ids[60:61], false)
	}
	wantMany, wantOne := run(binding.F32)
	gotMany, gotOne := run(binding.Q8_0)
	testutil.NMSE(t, "60 rows", gotMany, wantMany, 1e-3)
	testutil.NMSE(t, "one row", gotOne, wantOne, 1e-3)
}
