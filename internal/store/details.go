package store

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/inkling-go/inkling/internal/gguf"
)

// architectureKey is what a file is of; projectors are of clip.
const (
	architectureKey = "general.architecture"
	clip            = "clip"
)

// details reads the headers of a model's files by their paths: of the first of
// its parts, and of its projector, if there is one.
func details(model string, parts int, mmproj string) (d Details, err error) {
	f, err := gguf.Open(model)
	if err != nil {
		return d, err
	}
	defer f.Close()
	if n := len(f.Parts()); n != parts {
		return d, fmt.Errorf("%s: the model has %d files, want %d: two models cannot be put together", model, n, parts)
	}
	if err := d.text(f); err != nil || mmproj == "" {
		return d, err
	}
	p, err := gguf.Open(mmproj)
	if err != nil {
		return d, err
	}
	defer p.Close()
	arch, err := p.Str(architectureKey)
	if err != nil {
		return d, err
	}
	if arch != clip {
		return d, fmt.Errorf("%s: its architecture is %s, want a projector, which is of %s", mmproj, arch, clip)
	}
	if d.Vision, err = p.BoolOr("clip.has_vision_encoder", false); err != nil {
		return d, err
	}
	d.Audio, err = p.BoolOr("clip.has_audio_encoder", false)
	return d, err
}

// text reads what the file of the text model says.
func (d *Details) text(f *gguf.File) (err error) {
	if d.Architecture, err = f.Str(architectureKey); err != nil {
		return err
	}
	if d.Architecture == clip {
		return fmt.Errorf("%s: it is a projector, want a model", f.Path())
	}
	if d.Name, err = f.StrOr("general.name", ""); err != nil {
		return err
	}
	if d.Context, err = f.UintOr(d.Architecture+".context_length", 0); err != nil {
		return err
	}
	if d.Embedding, err = f.UintOr(d.Architecture+".embedding_length", 0); err != nil {
		return err
	}
	most := map[gguf.Type]int64{}
	var typ gguf.Type
	for _, t := range f.Tensors() {
		d.Parameters += t.Elems()
		if most[t.Type] += t.Elems(); most[t.Type] >= most[typ] {
			typ = t.Type
		}
	}
	number, err := f.UintOr("general.file_type", 1<<32)
	if err != nil {
		return err
	}
	d.Quantization = fileTypes[number]
	if len(most) > 0 {
		d.Quantization = cmp.Or(d.Quantization, strings.ToUpper(typ.String()))
	}
	return nil
}

// fileTypes are the names of general.file_type (enum llama_ftype of llama.cpp).
var fileTypes = map[uint64]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1",
	10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K",
	19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M",
	28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4",
}
