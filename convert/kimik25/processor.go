package kimik25

import (
	"math"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/convert"
)

// processorConfig is what the processor's files say about turning pictures and
// clips into patches.
type processorConfig struct {
	mean, std    [3]float32
	imagePatches int64 // in_patch_limit; Kimi-VL's in_token_limit, which counts patches too
	sidePatches  int64 // patch_limit_on_one_side
	pad          bool  // pad_input of Kimi-VL: fill up to whole blocks instead of cropping

	video          bool // the checkpoint says how to take clips
	framePatches   int64
	videoPatches   int64 // in_patch_limit_video, 0: none
	maxFrames      int64 // 0: no limit
	sampleFPS      float64
	framesPerChunk int64
	timestamps     string
}

// Values of the published processors.
const (
	defaultImagePatches = 16384
	defaultVLPatches    = 4096
	defaultFramePatches = 4096
	defaultSidePatches  = 512
	defaultFPS          = 2
	defaultTimestamps   = "hh:mm:ss.fff"
	bicubic             = 3 // Pillow's number of the filter
	pixelScale          = 1.0 / 255
	pixelScaleEpsilon   = 1e-9
)

// timestampModes are the spellings of a chunk's time.
var timestampModes = []string{defaultTimestamps, "mm:ss.fff", "mm:ss"}

// readProcessor reads preprocessor_config.json as published, with the settings in
// media_proc_cfg, and processor_config.json as the port writes it. A checkpoint
// without either gets the published values.
func readProcessor(src *convert.Source, c *config) (*processorConfig, error) {
	p := &processorConfig{
		mean: [3]float32{0.5, 0.5, 0.5}, std: [3]float32{0.5, 0.5, 0.5},
		imagePatches: defaultImagePatches, sidePatches: defaultSidePatches, framePatches: defaultFramePatches,
		sampleFPS: defaultFPS, framesPerChunk: defaultFrames, timestamps: defaultTimestamps,
	}
	if c.vl {
		p.imagePatches = defaultVLPatches
	}
	if c.vision == nil {
		return p, nil
	}
	for _, name := range []string{"processor_config.json", "preprocessor_config.json"} { // the latter wins
		f, err := src.Optional(name)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		switch media, image := f.Object("media_proc_cfg"), f.Object("image_processor"); {
		case media != nil:
			p.parsePublished(media, c)
		case image != nil:
			p.parsePort(image, c)
			if video := f.Object("video_processor"); video != nil {
				p.parsePortVideo(video, c)
			}
		default:
			p.parsePublished(f, c)
		}
		if err := f.Err(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// parsePublished reads the published settings.
func (p *processorConfig) parsePublished(f *convert.Fields, c *config) {
	p.parseColours(f)
	mustMatch(f, "patch_size", c.vision.patch)
	mergeSize(f)
	if f.Has("fixed_output_tokens") {
		f.Unsupportedf("%s is set, want null", f.Name("fixed_output_tokens"))
	}
	p.imagePatches = f.IntOr(p.imagePatches, "in_patch_limit", "in_token_limit")
	p.sidePatches = f.IntOr(p.sidePatches, "patch_limit_on_one_side")
	p.pad = f.BoolOr(p.pad, "pad_input")
	p.framePatches = f.IntOr(p.framePatches, "in_patch_limit_each_frame")
	p.videoPatches = f.IntOr(p.videoPatches, "in_patch_limit_video")
	p.maxFrames = f.IntOr(p.maxFrames, "max_num_frames_each_video")
	p.sampleFPS = f.FloatOr(p.sampleFPS, "sample_fps")
	p.framesPerChunk = f.IntOr(p.framesPerChunk, "temporal_merge_kernel_size")
	p.timestamps = f.StrOr(p.timestamps, "timestamp_mode")
	p.video = p.video || f.Has("temporal_merge_kernel_size")
	p.check(f, c)
}

// parsePort reads the port's settings for pictures.
func (p *processorConfig) parsePort(f *convert.Fields, c *config) {
	p.parseImage(f, c)
	p.imagePatches = f.IntOr(p.imagePatches, "max_patches")
	p.check(f, c)
}

// parsePortVideo reads the port's settings for clips, where temporal_patch_size is
// the number of frames in a chunk.
func (p *processorConfig) parsePortVideo(f *convert.Fields, c *config) {
	p.video = true
	p.parseImage(f, c)
	p.framePatches = f.IntOr(p.framePatches, "max_patches")
	p.sampleFPS = f.FloatOr(p.sampleFPS, "fps")
	p.framesPerChunk = f.IntOr(p.framesPerChunk, "temporal_patch_size")
	p.check(f, c)
}

// parseImage reads what the port's processors for pictures and clips share.
func (p *processorConfig) parseImage(f *convert.Fields, c *config) {
	for _, name := range []string{"do_convert_rgb", "do_normalize", "do_rescale", "do_resize"} {
		f.MustBe(name, true)
	}
	if s := f.FloatOr(pixelScale, "rescale_factor"); math.Abs(s-pixelScale) > pixelScaleEpsilon {
		f.Unsupportedf("%s is %v, want 1/255", f.Name("rescale_factor"), s)
	}
	if r := f.IntOr(bicubic, "resample"); r != bicubic {
		f.Unsupportedf("%s is %d, want %d (bicubic)", f.Name("resample"), r, bicubic)
	}
	p.parseColours(f)
	mustMatch(f, "patch_size", c.vision.patch)
	mustMatch(f, "merge_size", c.vision.merge)
	if size := f.Object("size"); size != nil {
		p.sidePatches = size.IntOr(p.sidePatches, "max_height", "max_width")
	}
}

// parseColours reads the normalisation.
func (p *processorConfig) parseColours(f *convert.Fields) {
	f.RGB("image_mean", &p.mean)
	f.RGB("image_std", &p.std)
	if slices.Contains(p.std[:], 0) {
		f.Failf("%s has a 0", f.Name("image_std"))
	}
}

// check refuses what cannot be.
func (p *processorConfig) check(f *convert.Fields, c *config) {
	for _, limit := range []struct {
		of string
		v  float64
	}{
		{"patches of a picture", float64(p.imagePatches)},
		{"patches of a side", float64(p.sidePatches)},
		{"patches of a frame", float64(p.framePatches)},
		{"frames of a chunk", float64(p.framesPerChunk)},
		{"frames a second", p.sampleFPS},
	} {
		if limit.v <= 0 {
			f.Failf("%s has %v %s, want more", strings.TrimSuffix(f.Name(""), "."), limit.v, limit.of)
		}
	}
	if p.framesPerChunk > c.vision.posTime {
		f.Failf("%d frames in a chunk, but init_pos_emb_time is %d", p.framesPerChunk, c.vision.posTime)
	}
	if !slices.Contains(timestampModes, p.timestamps) {
		f.Unsupportedf("%s is %q, want one of %q", f.Name("timestamp_mode"), p.timestamps, timestampModes)
	}
}
