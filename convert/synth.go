package convert

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/inkling-go/inkling/convert/quantin"
	"github.com/inkling-go/inkling/convert/shapes"
	"github.com/inkling-go/inkling/internal/safetensors"
)

// SynthOptions say what model to make up.
type SynthOptions struct {
	Config string // path of a config.json, or the name of one of package shapes
	Seed   uint64
	Layers int // of the language model, at most; 0 for all
	Options
}

// Synth writes a model of the shape that a config describes, with drawn weights: it
// computes as fast and takes as much memory as the real one. Options.Dir is not used.
//
// A tokenizer beside the config is used; otherwise the model gets a small vocabulary
// of the family's form.
func Synth(ctx context.Context, o SynthOptions) (Report, error) {
	start := time.Now()
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	var report Report
	err := o.withSource(func(src *Source, arch Arch) (err error) {
		report, err = run(ctx, src, arch, o.Options)
		return err
	})
	report.Took = time.Since(start)
	return report, err
}

// SynthHeaders writes the files of a model of such a shape without weights: keys and
// tensors are there, and a hole of the file where their data would be, which takes no
// room on the disk. It returns the path of each kind of file that the shape has. Models
// of any size can so be opened by a program that makes up the weights itself, see
// models.Params.
func SynthHeaders(o SynthOptions) (paths map[Kind]string, err error) {
	paths = map[Kind]string{}
	err = o.withSource(func(src *Source, arch Arch) error {
		plan, err := arch.Plan(src)
		if err != nil {
			return err
		}
		names, err := namesFor(o.Options)
		if err != nil {
			return err
		}
		for _, f := range plan.Files {
			out, err := newOutput(src, f, o.Options, names)
			if err != nil {
				return err
			}
			if err := out.writeHeader(); err != nil {
				return err
			}
			paths[f.Kind] = out.parts[0].path
		}
		return nil
	})
	return paths, err
}

// writeHeader writes a file in one part whose data is a hole.
func (out *output) writeHeader() (err error) {
	writers, err := out.open(false)
	defer func() {
		for _, w := range writers { // nothing to do after a commit
			err = errors.Join(err, w.Abort())
		}
	}()
	if err != nil {
		return err
	}
	for _, t := range out.targets {
		t.keep(t.rows * t.rowBytes)
	}
	for _, w := range writers {
		if err := w.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// withSource calls do with a checkpoint of the shape that has no weights, and
// completes the options.
func (o *SynthOptions) withSource(do func(*Source, Arch) error) error {
	name, config, err := readShape(o.Config)
	if err != nil {
		return err
	}
	if err := cutLayers(config, o.Layers); err != nil {
		return fmt.Errorf("%s: %w", o.Config, err)
	}
	o.Dir = name
	o.Name = cmp.Or(o.Name, name)
	o.OutDir = cmp.Or(o.OutDir, ".")
	dir, err := os.MkdirTemp("", "synth-")
	if err != nil {
		return err
	}
	return errors.Join(o.inFolder(dir, config, do), os.RemoveAll(dir))
}

// inFolder makes the checkpoint in dir.
func (o *SynthOptions) inFolder(dir string, config map[string]any, do func(*Source, Arch) error) error {
	if err := synthFiles(o.Config, dir, config); err != nil {
		return err
	}
	fields, err := ReadFields(filepath.Join(dir, "config.json"))
	if err != nil {
		return err
	}
	arch, err := archFor(fields)
	if err != nil {
		return err
	}
	return do(&Source{
		Dir: dir, Config: fields, Tensors: new(safetensors.Checkpoint), Weights: new(quantin.Set),
		drawn: &drawing{seed: o.Seed},
	}, arch)
}

// readShape reads a config and returns the model's name too.
func readShape(path string) (string, map[string]any, error) {
	data, ok := shapes.Config(path)
	if !ok {
		var err error
		if data, err = readBounded(path, maxJSON); errors.Is(err, os.ErrNotExist) {
			return "", nil, fmt.Errorf("%w; shapes that are known by name: %s", err, strings.Join(shapes.Names(), ", "))
		} else if err != nil {
			return "", nil, err
		}
	}
	config := make(map[string]any)
	if err := json.Unmarshal(data, &config); err != nil {
		return "", nil, &FormatError{path, -1, err.Error()}
	}
	for _, id := range []string{"image_token_id", "audio_token_id", "media_placeholder_token_id", "quantization_config", "quantization"} {
		delete(config, id)
	}
	name := strings.TrimSuffix(filepath.Base(path), ".json")
	if name == "config" {
		if abs, err := filepath.Abs(path); err == nil {
			name = filepath.Base(filepath.Dir(abs))
		}
	}
	return name, config, nil
}

// cutLayers leaves the first layers of a model.
func cutLayers(config map[string]any, layers int) error {
	text, ok := config["text_config"].(map[string]any)
	if !ok {
		text = config
	}
	all, ok := text["num_hidden_layers"].(float64)
	if !ok {
		return errors.New("num_hidden_layers is missing")
	}
	if layers <= 0 || layers >= int(all) {
		return nil
	}
	text["num_hidden_layers"] = layers
	for _, name := range []string{"layer_types", "mlp_layer_types"} {
		if list, ok := text[name].([]any); ok && len(list) > layers {
			text[name] = list[:layers]
		}
	}
	if ids, ok := text["local_layer_ids"].([]any); ok {
		text["local_layer_ids"] = slices.DeleteFunc(slices.Clone(ids), func(id any) bool {
			n, ok := id.(float64)
			return ok && int(n) >= layers
		})
	}
	for _, name := range []string{"dense_mlp_idx", "first_k_dense_replace"} {
		if n, ok := text[name].(float64); ok {
			text[name] = min(int(n), layers)
		}
	}
	return nil
}

// synthFiles writes the config and the tokenizer's files.
func synthFiles(path, dir string, config map[string]any) error {
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	kind, _ := config["model_type"].(string)
	list := shapes.Vocabulary(kind)
	own := filepath.Dir(path)
	for _, name := range []string{"tokenizer.json", "tiktoken.model"} {
		if _, err := os.Stat(filepath.Join(own, name)); err == nil {
			clear(list)
		}
	}
	if len(list) == 0 {
		for _, name := range []string{"tokenizer.json", "tiktoken.model", "tokenizer_config.json", "chat_template.jinja", "generation_config.json", "processor_config.json", "preprocessor_config.json"} {
			data, err := os.ReadFile(filepath.Join(own, name))
			if err == nil {
				list[name] = data
			} else if !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	list["config.json"] = data
	for name, data := range list {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// drawing makes weights up for a checkpoint without any.
type drawing struct {
	seed uint64
}

// part returns drawn weights for a spelling. Matrices are about as large as an
// initialiser makes them, so that activations stay finite; norms and scales are 1.
func (d *drawing) part(n int64, s Spelling) Part {
	shape := squeeze(s.Shape)
	var deviation, value float32
	switch cols := lastOf(shape); {
	case len(shape) > 1 && cols > 8:
		deviation = 1 / float32(math.Sqrt(float64(cols)))
	case len(shape) > 1: // taps of a convolution
		deviation = 0.1
	case !strings.Contains(s.Name, "bias"):
		value = 1
	}
	w := quantin.Draw(s.Name, s.Shape, d.seed, deviation, value)
	return Part{N: n, From: w.Parts[0], Rows: s.Rows, Transposed: s.Transposed, Weights: w}
}

func lastOf(shape []int64) int64 {
	if len(shape) == 0 {
		return 1
	}
	return shape[len(shape)-1]
}

// repeat writes rows [first, end) of drawn weights. A few rows are encoded once and
// written again and again, so that a large model takes the time of its files.
func (x *use) repeat(w *quantin.Weights, first, end int64) error {
	rows, err := x.drawn()
	if err != nil {
		return err
	}
	o := x.target
	for period := int64(len(rows)) / o.rowBytes; first < end; {
		at := first % w.Period()
		n := min(end-first, period-at)
		if err := o.write(rows[at*o.rowBytes:][:n*o.rowBytes], (x.row+first)*o.rowBytes); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// drawnBytes is about how much of drawn weights is written at once.
const drawnBytes = 1 << 20

// encodeDrawn returns encoded rows, a multiple of the period of them or all there are.
func (x *use) encodeDrawn(w *quantin.Weights) ([]byte, error) {
	o := x.target
	n := min(w.Period(), x.N)
	src := make([]float32, n*o.ne0)
	w.Rowed(o.ne0).Decode(src, x.row)
	rows := make([]byte, n*o.rowBytes)
	if err := o.encode(rows, src, x.row); err != nil {
		return nil, fmt.Errorf("tensor %s: %w", o.Name, err)
	}
	if n < w.Period() {
		return rows, nil
	}
	return bytes.Repeat(rows, int(1+drawnBytes/int64(len(rows)))), nil
}
