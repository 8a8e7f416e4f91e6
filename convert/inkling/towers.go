package inkling

import (
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/internal/hmlp"
)

// Prefixes of the towers' tensors, as published and as in the port; all are found
// without "model." too.
const (
	publishedVision, portVision = "model.visual.", "model.vision_tower."
	publishedAudio, portAudio   = "model.audio.", "model.audio_tower."
)

// towerPrefix returns a tower's prefix in this checkpoint, and whether it is there.
func (p *planner) towerPrefix(prefix string) (string, bool) {
	if p.Src.Drawn() {
		return prefix, prefix == publishedVision && p.c.vision != nil || prefix == publishedAudio && p.c.audio != nil
	}
	if short := strings.TrimPrefix(prefix, "model."); p.Src.HasPrefix(short) {
		return short, true
	}
	return prefix, p.Src.HasPrefix(prefix)
}

// visionNames are the names of the image tower's tensors in one spelling; linear
// and norm are formats with the number of the layer, below the tower.
type visionNames struct {
	linear, norm, final string
}

var (
	publishedVisionNames = visionNames{
		linear: "layers.linear_%d.weight",
		norm:   "layers.norm_%d.weight",
		final:  "final_norm.weight",
	}
	portVisionNames = visionNames{
		linear: "encoder_layers.%d.projection.weight",
		norm:   "encoder_layers.%d.layer_norm.weight",
		final:  "final_norm.weight",
	}
)

// visionTensors lists the tensors of the image tower; none if the checkpoint has
// no such tower.
func (p *planner) visionTensors() []convert.Tensor {
	n := portVisionNames
	prefix, ok := p.towerPrefix(portVision)
	if !ok {
		n = publishedVisionNames
		prefix, ok = p.towerPrefix(publishedVision)
	}
	if !ok {
		if p.c.vision != nil {
			p.Notef("config.json has a vision_config but the checkpoint has no image tower: no pictures")
			p.c.vision = nil
		}
		return nil
	}
	v, h := p.c.vision, p.c.text.hiddenSize
	if v == nil {
		p.Failf("vision_config is missing, but there are tensors %s*", prefix)
		return nil
	}
	n = visionNames{prefix + n.linear, prefix + n.norm, prefix + n.final}
	p.towerWidth("vision_config", v.decoderDModel)
	count := int64(0)
	for p.Src.Has(fmt.Sprintf(n.linear, count)) {
		count++
	}
	if p.Src.Drawn() {
		count = v.layers
	}
	if v.layers != 0 && v.layers != count {
		p.Failf("vision_config.n_layers is %d, the image tower has %d layers", v.layers, count)
		return nil
	}
	v.layers = count
	plan, err := hmlp.Plan(int(v.patchSize), int(v.temporalPatchSize), int(v.channels), int(v.layers))
	if err != nil {
		p.Failf("vision_config: %v", err)
		return nil
	}
	var out []convert.Tensor
	for i, l := range plan {
		width := int64(l.Out)
		if i == len(plan)-1 {
			width = h
		}
		shape := []int64{width, int64(l.In)}
		out = append(out, p.Match.Find(fmt.Sprintf("v.hmlp.%d.linear.weight", i), convert.Reversed(shape),
			convert.Spelling{Name: fmt.Sprintf(n.linear, i), Shape: shape}))
		if l.Norm {
			out = append(out, p.vector(fmt.Sprintf("v.hmlp.%d.norm.weight", i), fmt.Sprintf(n.norm, i), width))
		}
	}
	return append(out, p.vector("v.hmlp.final_norm.weight", n.final, h))
}

// audioTensors lists the tensors of the audio tower; none if the checkpoint has no
// such tower.
func (p *planner) audioTensors() []convert.Tensor {
	embedding, norm := "embed_audio_tokens.embed_audio_tokens.weight", "norm.weight"
	prefix, ok := p.towerPrefix(portAudio)
	if !ok {
		embedding, norm = "encoder.weight", "final_norm.weight"
		prefix, ok = p.towerPrefix(publishedAudio)
	}
	embedding, norm = prefix+embedding, prefix+norm
	if !ok {
		if p.c.audio != nil {
			p.Notef("config.json has an audio_config but the checkpoint has no audio tower: no sound")
			p.c.audio = nil
		}
		return nil
	}
	a, h := p.c.audio, p.c.text.hiddenSize
	if a == nil {
		p.Failf("audio_config is missing, but there are tensors %s*", prefix)
		return nil
	}
	p.towerWidth("audio_config", a.decoderDModel)
	bins := a.melVocab
	if t, ok := p.Src.Weights.Find(embedding); ok && bins == 0 && len(t.Shape) == 2 {
		if bins = t.Shape[0] / a.melBins; bins*a.melBins != t.Shape[0] || bins == 0 {
			p.Failf("tensor %s has %d rows, which is no multiple of n_mel_bins %d", embedding, t.Shape[0], a.melBins)
		}
	}
	if p.processor.dmelBins != 0 && bins != 0 && p.processor.dmelBins != bins {
		p.Failf("num_dmel_bins of the processor is %d, the audio tower has %d", p.processor.dmelBins, bins)
	}
	if bins == 0 {
		bins = defaultMelVocab
	}
	shape := []int64{a.melBins * bins, h}
	return []convert.Tensor{
		p.Match.Find("a.dmel.embedding.weight", convert.Reversed(shape), convert.Spelling{Name: embedding, Shape: shape}),
		p.vector("a.dmel.final_norm.weight", norm, h),
	}
}

// vector looks up a norm.
func (p *planner) vector(gguf, name string, n int64) convert.Tensor {
	return p.Match.Find(gguf, []int64{n}, convert.Spelling{Name: name, Shape: []int64{n}})
}

// towerWidth checks that a tower ends in the width of the text model.
func (p *planner) towerWidth(config string, width int64) {
	if h := p.c.text.hiddenSize; width != 0 && width != h {
		p.Failf("%s.decoder_dmodel is %d, text_config.hidden_size is %d", config, width, h)
	}
}
