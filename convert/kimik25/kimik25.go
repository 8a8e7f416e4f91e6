// Package kimik25 describes checkpoints of the Kimi-K2.5 and Kimi-VL families to
// the converter: text of the DeepSeek-V3 type (multi-head latent attention and a
// mixture of experts) and the MoonViT tower for pictures and clips. Plain text
// checkpoints of that type are read too. It knows the published names and config
// spelling and those of the port in transformers.
package kimik25

import (
	"slices"

	"github.com/inkling-go/inkling/convert"
)

// model_types of checkpoints with a tower.
const (
	typeK25 = "kimi_k25"
	typeVL  = "kimi_vl"
)

// textTypes are the model_types of the text model, alone or as a sub-config.
var textTypes = []string{"deepseek_v3", "kimi_k2"}

func init() { convert.Register(arch{}) }

// arch implements [convert.Arch].
type arch struct{}

// Name returns "kimik25".
func (arch) Name() string { return "kimik25" }

// ModelTypes returns the multimodal types and the text-only ones.
func (arch) ModelTypes() []string { return append([]string{typeK25, typeVL}, textTypes...) }

// Refuses refuses the older DeepSeek text model, whose router ranks groups of
// experts in another way, and names what is linear attention.
func (arch) Refuses(modelType string) string {
	switch {
	case modelType == "deepseek_v2":
		return `model_type "deepseek_v2" has another router than deepseek_v3`
	case modelType == "kimi_linear":
		return `model_type "kimi_linear" has linear attention, another architecture than kimi_k25`
	}
	return ""
}

// Plan describes the text file, and the mmproj file if there is a tower.
func (arch) Plan(src *convert.Source) (*convert.Plan, error) {
	c, err := parseConfig(src.Config)
	if err != nil {
		return nil, err
	}
	processor, err := readProcessor(src, c)
	if err != nil {
		return nil, err
	}
	p := &planner{Planner: convert.NewPlanner(src), c: c, processor: processor}
	text := convert.File{Kind: convert.Text, Arch: "deepseek2", Tensors: p.textTensors()}
	mmproj := convert.File{Kind: convert.MMProj, Arch: "clip", Tensors: p.visionTensors()}
	p.skipRest()
	if err := p.Err(); err != nil {
		return nil, err
	}
	tok, err := p.tokenizer()
	if err != nil {
		return nil, err
	}
	text.KV = slices.Concat(p.textKeys(), tok.kv)
	files := []convert.File{text}
	if len(mmproj.Tensors) > 0 {
		mmproj.KV = p.mmprojKeys(tok.template)
		files = append(files, mmproj)
	} else {
		p.Notef("the checkpoint has no tower: there is no mmproj file")
	}
	return &convert.Plan{Files: files, Notes: p.Notes}, nil
}

// planner collects the parts of a plan.
type planner struct {
	convert.Planner
	c         *config
	processor *processorConfig
}
