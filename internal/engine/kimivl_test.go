package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/internal/safetensors"
	"github.com/inkling-go/inkling/internal/testutil"
)

// twinTensor is a tensor of a checkpoint being made; shape is row-major.
type twinTensor struct {
	name  string
	dtype safetensors.DType
	shape []int64
	data  []byte
}

// kimiVLTwin makes a Kimi-VL checkpoint with the weights of the random Kimi-K2.5
// one and converts it. change sees the text part of config.json and the tensors.
func kimiVLTwin(t *testing.T, change func(text map[string]any, tensors []twinTensor) []twinTensor) string {
	t.Helper()
	src, dir, out := testutil.Testdata(t, kimiRandom, "original"), t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(src, name))
		must(err)
		return data
	}
	write := func(name string, data []byte) { must(os.WriteFile(filepath.Join(dir, name), data, 0o600)) }
	writeJSON := func(name string, v any) {
		data, err := json.Marshal(v)
		must(err)
		write(name, data)
	}

	var config map[string]any
	must(json.Unmarshal(read("config.json"), &config))
	text := config["text_config"].(map[string]any)
	tensors := twinTensors(t, src)
	if change != nil {
		tensors = change(text, tensors)
	}
	write("model.safetensors", safetensorsFile(t, tensors))
	vision := map[string]any{"model_type": "moonvit"}
	for key, v := range config["vision_config"].(map[string]any) {
		switch short := strings.TrimPrefix(key, "vt_"); short {
		case "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
			"init_pos_emb_height", "init_pos_emb_width", "merge_kernel_size", "patch_size":
			vision[short] = v
		}
	}
	config["model_type"], config["vision_config"] = "kimi_vl", vision
	delete(config, "use_unified_vision_chunk")
	writeJSON("config.json", config)
	writeJSON("preprocessor_config.json", map[string]any{
		"in_token_limit": 4096, "patch_size": 14, "pad_input": true, "merge_kernel_size": []int{2, 2},
		"image_mean": []float64{0.5, 0.5, 0.5}, "image_std": []float64{0.5, 0.5, 0.5},
	})
	write("tiktoken.model", read("tiktoken.model"))
	write("generation_config.json", read("generation_config.json"))
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} {
		write(name, bytes.ReplaceAll(read(name), []byte("<|media_begin|>"), []byte("<|media_start|>")))
	}
	_, err := convert.Run(context.Background(), convert.Options{Dir: dir, OutDir: out, Name: "twin", OutType: convert.OutF32})
	must(err)
	return filepath.Join(out, "twin-F32.gguf")
}

// twinTensors reads a checkpoint under Kimi-VL's names.
func twinTensors(t *testing.T, dir string) (tensors []twinTensor) {
	t.Helper()
	ck, err := safetensors.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	rename := strings.NewReplacer("mm_projector.proj.0.", "multi_modal_projector.linear_1.",
		"mm_projector.proj.2.", "multi_modal_projector.linear_2.", "mm_projector.", "multi_modal_projector.")
	for _, name := range ck.Names() {
		x, _ := ck.Tensor(name)
		tensors = append(tensors, twinTensor{rename.Replace(name), x.DType, x.Shape, slices.Clone(ck.Bytes(x))})
	}
	return tensors
}

// safetensorsFile is a file with the tensors.
func safetensorsFile(t *testing.T, tensors []twinTensor) []byte {
	t.Helper()
	header := map[string]any{}
	var data []byte
	for _, x := range tensors {
		header[x.name] = map[string]any{"dtype": x.dtype, "shape": x.shape, "data_offsets": []int{len(data), len(data) + len(x.data)}}
		data = append(data, x.data...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return slices.Concat(file, text, data)
}

// TestKimiVLTwin: a Kimi-VL model of the same weights has the same rows and
// answers of pictures, and of clips in the one layout that it knows by itself.
func TestKimiVLTwin(t *testing.T) {
	e := openModel(t, kimiVLTwin(t, nil), binding.F32)
	if _, ok := e.vocab.ID("<|media_begin|>"); ok {
		t.Fatal("the twin has <|media_begin|>")
	}
	images := testutil.OpenGolden(t, kimiRandom, "images")
	for i, file := range []string{"image0_84x112.png", "image1_150x75.png"} {
		_, all := gather(t, e, local(goldenImage(t, file)))
		got, err := all[0].vectors(nil)
		if err != nil {
			t.Fatal(err)
		}
		testutil.Close(t, file, got, images.Floats(fmt.Sprintf("image%d.features", i)), testutil.Tol{Abs: 1e-4, Rel: 1e-4})
	}

	image1 := goldenImage(t, "image1_150x75.png")
	g := testutil.OpenGolden(t, kimiRandom, "prompts")
	for _, c := range []struct {
		name  string
		parts []chat.Part
		notes []string
	}{
		{"image1", []chat.Part{image1, {Text: "Explain step by step."}}, nil},
		{
			"media_order_image1_and_t6_one_clip",
			[]chat.Part{image1, {Text: " and "}, videoPart(goldenClip(t, 6)), {Text: "Which colour is the circle?"}},
			[]string{untrainedNote},
		},
	} {
		r := local(c.parts...)
		r.MaxTokens = 20
		res := generate(t, e, r)
		// <|media_start|> has the id of <|media_begin|>.
		if want := int32s(g.Ints(c.name + ".input_ids")); !slices.Equal(res.PromptIDs, want) {
			t.Errorf("%s: prompt %v, want %v", c.name, res.PromptIDs, want)
		}
		if want := int32s(g.Ints(c.name + ".generated")); !slices.Equal(res.IDs, want) {
			t.Errorf("%s: answered %v, want %v", c.name, res.IDs, want)
		}
		if d := cmp.Diff(c.notes, res.Warnings); d != "" {
			t.Errorf("%s: notes (-want +got):\n%s", c.name, d)
		}
	}

	r := local(videoPart(goldenClip(t, 5)))
	r.Video.Layout = media.LayoutChunks
	if _, all := gather(t, e, r); len(all) != 2 {
		t.Errorf("chunks that were asked for: %d media, want 2", len(all))
	}
}

// TestVideoChangesNoPicture: a clip behind or before a picture leaves the
// picture's ids and rows as they are, in both families.
func TestVideoChangesNoPicture(t *testing.T) {
	for name, path := range map[string]string{
		"kimi_k25": convertOnce(t, "f32", kimiRandom, "original"), "kimi_vl": kimiVLTwin(t, nil),
	} {
		t.Run(name, func(t *testing.T) {
			e := openModel(t, path, binding.F32)
			picture, clip, ask := goldenImage(t, "image1_150x75.png"), videoPart(goldenClip(t, 6)), chat.Part{Text: "Why?"}
			prompt := func(parts ...chat.Part) rows {
				p, err := e.prompt(t.Context(), local(parts...))
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			// block is the media block of the picture with what opens and closes it.
			block := func(p rows, i int) (ids []int32, hash [32]byte) {
				m := p.media[i]
				return p.ids[m.pos-3 : m.pos+m.rows+1], m.hash
			}
			alone := prompt(picture, ask)
			want, hash := block(alone, 0)
			behind, before := prompt(picture, clip, ask), prompt(clip, picture, ask)
			for _, c := range []struct {
				name string
				p    rows
				at   int
			}{{"picture first", behind, 0}, {"clip first", before, len(before.media) - 1}} {
				got, gotHash := block(c.p, c.at)
				if !slices.Equal(got, want) || gotHash != hash {
					t.Errorf("%s: block %v, want %v", c.name, got, want)
				}
			}
			if n, end := alone.common(behind), alone.media[0].pos+alone.media[0].rows; n < end {
				t.Errorf("%d rows in common with the prompt without the clip, want at least %d", n, end)
			}
		})
	}
}

// TestKimiVLWithoutQueryLatent: a twin whose queries have no latent, without
// YaRN, answers the same however its prompt is cut.
func TestKimiVLWithoutQueryLatent(t *testing.T) {
	path := kimiVLTwin(t, func(text map[string]any, tensors []twinTensor) []twinTensor {
		text["q_lora_rank"], text["rope_scaling"] = nil, nil
		tensors = slices.DeleteFunc(tensors, func(x twinTensor) bool { return strings.Contains(x.name, ".self_attn.q_") })
		for il := range int(text["num_hidden_layers"].(float64)) {
			w := testutil.Uniform(testutil.Rand(t), 4*48*128, -0.1, 0.1)
			var data []byte
			for _, v := range w {
				data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(v)>>16))
			}
			name := fmt.Sprintf("language_model.model.layers.%d.self_attn.q_proj.weight", il)
			tensors = append(tensors, twinTensor{name, safetensors.BF16, []int64{4 * 48, 128}, data})
		}
		return tensors
	})
	images := testutil.OpenGolden(t, kimiRandom, "images")
	var first []int32
	for _, ubatch := range []int{512, 5} {
		e, err := Open(context.Background(), Options{Model: path, KV: binding.F32, Threads: 1, Context: 512, UBatch: ubatch})
		if err != nil {
			t.Fatal(err)
		}
		r := local(goldenImage(t, "image0_84x112.png"), videoPart(goldenClip(t, 3)), chat.Part{Text: "Why?"})
		r.MaxTokens = 20
		_, all := gather(t, e, r)
		got, err := all[0].vectors(nil)
		if err != nil {
			t.Fatal(err)
		}
		testutil.Close(t, "image0", got, images.Floats("image0.features"), testutil.Tol{Abs: 1e-4, Rel: 1e-4})
		res := generate(t, e, r)
		e.Close()
		if first == nil {
			first = res.IDs
		}
		if len(res.IDs) < 2 || !slices.Equal(res.IDs, first) {
			t.Errorf("%d rows at a time: answered %v, want %v", ubatch, res.IDs, first)
		}
	}
}
