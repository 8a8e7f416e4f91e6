// Package inkling describes checkpoints of the Inkling family to the converter:
// text with sliding and full attention and a mixture of experts, an image tower
// and an audio tower. It reads the published names and config spelling and those
// of the port in transformers.
package inkling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/convert"
)

// multimodal is the model_type of a checkpoint with towers.
const multimodal = "inkling_mm_model"

// textTypes are the model_types of the text model, alone or as a sub-config.
var textTypes = []string{"inkling_text", "inkling"}

func init() { convert.Register(arch{}) }

// arch implements [convert.Arch].
type arch struct{}

// Name returns "inkling".
func (arch) Name() string { return "inkling" }

// ModelTypes returns the multimodal type and the text-only ones.
func (arch) ModelTypes() []string { return append([]string{multimodal}, textTypes...) }

// Refuses refuses the second generation, whose layers are run in loops.
func (arch) Refuses(modelType string) string {
	if strings.HasPrefix(modelType, "inkling2") {
		return fmt.Sprintf("model_type %q is a looped transformer, another architecture than inkling", modelType)
	}
	return ""
}

// Plan describes the text file, the mmproj file if there are towers, and the file of
// the layers for multi-token prediction if they are there.
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
	p.Notes = append(p.Notes, c.notes...)
	text := convert.File{Kind: convert.Text, Arch: "inkling", Tensors: p.textTensors()}
	mmproj := convert.File{Kind: convert.MMProj, Arch: "clip"}
	vision, audio := p.visionTensors(), p.audioTensors()
	mmproj.Tensors = slices.Concat(vision, audio)
	mtp := p.mtpFile()
	if err := p.Err(); err != nil {
		return nil, err
	}
	mmproj.KV = p.mmprojKeys(len(vision) > 0, len(audio) > 0)
	tokenizer, err := p.tokenizerKeys()
	if err != nil {
		return nil, err
	}
	text.KV = slices.Concat(textKeys(&c.text), tokenizer)
	files := []convert.File{text}
	if len(mmproj.Tensors) > 0 {
		files = append(files, mmproj)
	} else {
		p.Notef("the checkpoint has no towers: there is no mmproj file")
	}
	if mtp != nil {
		files = append(files, *mtp)
	}
	return &convert.Plan{Files: files, Notes: p.Notes}, nil
}

// planner collects the parts of a plan.
type planner struct {
	convert.Planner
	c         *config
	processor *processorConfig
}
