// Package inkling describes checkpoints of the Inkling family to the converter:
// text with sliding and full attention and a mixture of experts, an image tower
// and an audio tower. It reads the published names and config spelling and those
// of the port in transformers.
package inkling

import (
	"cmp"
	"fmt"
	"maps"
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
	p := &planner{c: c, src: src, processor: processor, match: convert.NewMatcher(src)}
	p.notes = append(p.notes, c.notes...)
	text := convert.File{Kind: convert.Text, Arch: "inkling", Tensors: p.textTensors()}
	mmproj := convert.File{Kind: convert.MMProj, Arch: "clip"}
	vision, audio := p.visionTensors(), p.audioTensors()
	mmproj.Tensors = slices.Concat(vision, audio)
	mtp := p.mtpFile()
	if err := cmp.Or(p.err, p.match.Err()); err != nil {
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
		p.notef("the checkpoint has no towers: there is no mmproj file")
	}
	if mtp != nil {
		files = append(files, *mtp)
	}
	return &convert.Plan{Files: files, Notes: p.notes}, nil
}

// planner collects the parts of a plan.
type planner struct {
	c         *config
	src       *convert.Source
	processor *processorConfig
	match     *convert.Matcher
	notes     []string
	err       error // the first
}

// notef adds a note for the user.
func (p *planner) notef(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// failf makes a contradiction between config.json and the tensors the error.
func (p *planner) failf(format string, args ...any) {
	if p.err == nil {
		p.err = &convert.FormatError{Path: p.src.Config.File(), Off: -1, Msg: fmt.Sprintf(format, args...)}
	}
}

// has reports whether the checkpoint has a tensor.
func (p *planner) has(name string) bool {
	return p.src.Has(name)
}

// hasPrefix reports whether the checkpoint has a tensor with one of the prefixes.
func (p *planner) hasPrefix(prefixes ...string) bool {
	for _, name := range p.src.Weights.Names() {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}

// sortedKeys returns the keys of m in order, so that messages do not vary.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
