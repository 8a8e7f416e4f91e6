package inkling

import (
	"math"
	"slices"

	"github.com/inkling-go/inkling/convert"
)

// visionConfig is the vision sub-config. Its hidden_size, num_hidden_layers and
// num_attention_heads, which the port writes, describe nothing in the model and are
// not read.
type visionConfig struct {
	patchSize, temporalPatchSize, channels int64
	layers                                 int64 // n_layers, 0 if not given: the tensors tell
	decoderDModel                          int64 // 0 if not given
	rmsNormEps                             float64
}

// audioConfig is the audio sub-config.
type audioConfig struct {
	melBins       int64
	melVocab      int64 // 0 if not given, or given as the port's class default
	decoderDModel int64 // 0 if not given
	rmsNormEps    float64
}

// Values of the published models: defaults for what a config may leave out, and
// what it must not change.
const (
	defaultEps        = 1e-6
	defaultPatch      = 40
	defaultTemporal   = 2
	defaultChannels   = 3
	defaultMelBins    = 80
	defaultMelVocab   = 16
	dmelMin, dmelMax  = -7, 2
	lanczos           = 1 // Pillow's number of the filter
	sampleRate        = 16000
	hopLength         = 800
	windowLength      = 1600
	secondsPerToken   = 0.05
	pixelScale        = 1.0 / 255
	pixelScaleEpsilon = 1e-9
)

func parseVision(f *convert.Fields) *visionConfig {
	f.MustBeStr("vision_encoder_type", "hmlp")
	f.MustBe("use_vision_norm", true)
	v := &visionConfig{
		patchSize:         f.IntOr(defaultPatch, "patch_size"),
		temporalPatchSize: f.IntOr(defaultTemporal, "temporal_patch_size"),
		channels:          f.IntOr(defaultChannels, "n_channels", "num_channels"),
		layers:            f.IntOr(0, "n_layers"),
		decoderDModel:     f.IntOr(0, "decoder_dmodel"),
		rmsNormEps:        f.FloatOr(defaultEps, "rms_norm_eps"),
	}
	if v.channels != defaultChannels {
		f.Unsupportedf("%s is %d, want %d: pictures are RGB", f.Name("n_channels"), v.channels, defaultChannels)
	}
	f.Positive(map[string]int64{"patch_size": v.patchSize, "temporal_patch_size": v.temporalPatchSize})
	return v
}

func parseAudio(f *convert.Fields) *audioConfig {
	f.MustBeStr("audio_mode", "dmel")
	f.MustBe("use_audio_norm", true)
	f.MustBe("bias", false)
	f.MustBe("use_bias", false)
	a := &audioConfig{
		melBins:       f.IntOr(defaultMelBins, "n_mel_bins", "num_codebooks"),
		melVocab:      f.IntOr(0, "mel_vocab_size", "codebook_size"),
		decoderDModel: f.IntOr(0, "decoder_dmodel"),
		rmsNormEps:    f.FloatOr(defaultEps, "rms_norm_eps"),
	}
	if a.melVocab == portMelVocab {
		a.melVocab = 0
	}
	f.Positive(map[string]int64{"n_mel_bins": a.melBins})
	dmelRange(f)
	return a
}

// processorConfig is what processor_config.json says about turning pictures and
// sound into arrays.
type processorConfig struct {
	mean, std   [3]float32
	rescaleFrac float64 // 0: pictures keep their size
	maxEdge     int64   // of rescaling, 0: no limit, -1: not given
	dmelBins    int64   // 0: not given
	imageToken  string  // placeholder of pictures
	audioToken  string  // placeholder of sound
}

// readProcessor reads processor_config.json, or preprocessor_config.json as older
// versions of transformers write the image part of it. A checkpoint without either
// gets the published values.
func readProcessor(src *convert.Source, c *config) (*processorConfig, error) {
	p := &processorConfig{
		mean:       [3]float32{0.48145466, 0.4578275, 0.40821073},
		std:        [3]float32{0.26862954, 0.26130258, 0.27577711},
		maxEdge:    -1,
		imageToken: "<|unused_200054|>",
		audioToken: "<|unused_200053|>",
	}
	f, err := src.Optional("processor_config.json")
	if err != nil {
		return nil, err
	}
	if f == nil {
		if f, err = src.Optional("preprocessor_config.json"); f == nil {
			return p, err
		}
	}
	image := f.Object("image_processor")
	if image == nil {
		image = f
	}
	if c.vision != nil {
		p.parseImage(image, c.vision)
	}
	if c.audio != nil {
		p.parseAudio(f, c.audio)
	}
	p.imageToken = f.StrOr(p.imageToken, "image_token")
	p.audioToken = f.StrOr(p.audioToken, "audio_token")
	return p, f.Err()
}

// parseImage reads the image processor's part.
func (p *processorConfig) parseImage(f *convert.Fields, v *visionConfig) {
	for _, name := range []string{"do_convert_rgb", "do_normalize", "do_rescale"} {
		f.MustBe(name, true)
	}
	if s := f.FloatOr(pixelScale, "rescale_factor"); math.Abs(s-pixelScale) > pixelScaleEpsilon {
		f.Unsupportedf("%s is %v, want 1/255", f.Name("rescale_factor"), s)
	}
	f.RGB("image_mean", &p.mean)
	f.RGB("image_std", &p.std)
	if slices.Contains(p.std[:], 0) {
		f.Failf("%s has a 0", f.Name("image_std"))
	}
	if size := f.Object("size"); size != nil {
		for _, side := range []string{"height", "width"} {
			if n := size.IntOr(v.patchSize, side); n != v.patchSize {
				f.Failf("%s is %d but patch_size is %d", size.Name(side), n, v.patchSize)
			}
		}
	}
	const maxEdge = "rescale_image_max_upscaled_long_edge"
	p.maxEdge = f.IntOr(-1, maxEdge)
	if p.rescaleFrac = f.FloatOr(0, "rescale_image_frac"); p.rescaleFrac == 0 {
		return
	}
	if p.rescaleFrac < 0 {
		f.Failf("%s is %v, want more than 0", f.Name("rescale_image_frac"), p.rescaleFrac)
	}
	if r := f.IntOr(lanczos, "resample"); r != lanczos {
		f.Unsupportedf("%s is %d, want %d (Lanczos)", f.Name("resample"), r, lanczos)
	}
	if f.IsNull(maxEdge) {
		p.maxEdge = 0
	}
}

// dmelRange refuses bins that span other levels than the published ones: like the
// framing below, the range has no place in GGUF and readers assume it.
func dmelRange(f *convert.Fields) {
	f.MustBeNum("dmel_min_value", dmelMin)
	f.MustBeNum("dmel_max_value", dmelMax)
}

// parseAudio reads the feature extractor's part.
func (p *processorConfig) parseAudio(f *convert.Fields, a *audioConfig) {
	p.dmelBins = f.IntOr(0, "num_dmel_bins")
	dmelRange(f)
	x := f.Object("feature_extractor")
	if x == nil {
		return
	}
	if n := x.IntOr(a.melBins, "feature_size"); n != a.melBins {
		f.Failf("%s is %d but n_mel_bins is %d", x.Name("feature_size"), n, a.melBins)
	}
	x.MustBeNum("sampling_rate", sampleRate)
	x.MustBeNum("hop_length", hopLength)
	x.MustBeNum("n_fft", windowLength)
	x.MustBeNum("window_size", windowLength)
	x.MustBeNum("audio_token_duration_s", secondsPerToken)
}
