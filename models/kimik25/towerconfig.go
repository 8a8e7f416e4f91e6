package kimik25

import (
	"math"

	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
)

// towerConfig holds the numbers of an mmproj file.
type towerConfig struct {
	embd, width, ff, blocks, heads int
	posCols, posRows, posTime      int
	eps                            float32 // of the projector's norm
	interleaved                    bool    // kind kimivl: split q, k, v; pairs of columns and rows alternate

	image        media.PatchConfig
	clip         media.ClipRule
	framePatches int // of a frame of a chunk
	itemPatches  int // of all frames of a chunk; 0: no limit
}

// Values of the published models, for files of other programs that lack our keys.
const (
	defaultFramePatches = 4096
	defaultImagePatches = 16384
	defaultVLPatches    = 4096
	defaultSide         = 512
)

// readTowerConfig reads and checks the keys of an mmproj file of the kind.
func readTowerConfig(f *gguf.File, kind string) (towerConfig, error) {
	k := models.NewKeys(f, "")
	half := [3]float32{0.5, 0.5, 0.5}
	vl := kind == "kimivl"
	c := towerConfig{
		embd:        k.Int("clip.vision.projection_dim", 1),
		width:       k.Int("clip.vision.embedding_length", 1),
		ff:          k.Int("clip.vision.feed_forward_length", 1),
		blocks:      k.Int("clip.vision.block_count", 1),
		heads:       k.Int("clip.vision.attention.head_count", 1),
		eps:         float32(k.PositiveOr("clip.vision.attention.layer_norm_epsilon", 1e-5)),
		posTime:     k.IntOr("vision.pos_emb_time", 1, 4),
		interleaved: vl,
	}
	if n := k.IntOr("clip.vision.projector.scale_factor", 1, mergeSide); n != mergeSide {
		k.Failf("clip.vision.projector.scale_factor", "%d, want %d", n, mergeSide)
	}
	if c.blocks > maxLayers {
		k.Failf("clip.vision.block_count", "%d, want at most %d", c.blocks, maxLayers)
	}
	if c.heads > 0 && c.width%(4*c.heads) != 0 {
		k.Failf("clip.vision.embedding_length", "%d, want a multiple of 4 for each of %d heads", c.width, c.heads)
	}
	c.readPositions(f, k)

	patch := k.Int("clip.vision.patch_size", 1)
	c.image = media.PatchConfig{
		Patch: patch, Merge: mergeSide,
		Mean: k.RGB("clip.vision.image_mean", half), Std: k.RGB("clip.vision.image_std", half),
		Side: k.IntOr("kimi.image.side_patch_limit", 1, defaultSide), Tokens: vl, Crop: vl && !k.BoolOr("kimi.image.pad_input", false),
	}
	const pixels = "clip.vision.image_max_pixels" // llama.cpp writes it for kimik25 only
	budget := defaultImagePatches
	if vl {
		budget = defaultVLPatches
	}
	if c.image.Budget = k.IntOr(pixels, 1, budget*patch*patch) / max(patch*patch, 1); c.image.Budget < 1 {
		k.Failf(pixels, "less than a patch of %d x %d", patch, patch)
	}
	c.readClips(k)
	return c, k.Err()
}

// readPositions finds the sides of the position table, which files of kind
// kimivl hold as one row of places.
func (c *towerConfig) readPositions(f *gguf.File, k *models.Keys) {
	t, ok := f.Tensor("v.position_embd.weight")
	if !ok || len(t.Dims) < 2 {
		return // binding will say so
	}
	places := 1
	for _, n := range t.Dims[1:] {
		places *= int(n)
	}
	c.posCols, c.posRows = k.IntOr("vision.pos_emb_width", 1, 0), k.IntOr("vision.pos_emb_height", 1, 0)
	if c.posCols*c.posRows != places { // absent, or of a file that keeps the published numbers
		side := int(math.Round(math.Sqrt(float64(places))))
		c.posCols, c.posRows = side, places/max(side, 1)
		if len(t.Dims) == 3 {
			c.posCols, c.posRows = int(t.Dims[1]), int(t.Dims[2])
		}
	}
	if c.posCols < 1 || c.posCols*c.posRows != places {
		k.Failf("vision.pos_emb_width", "the table has %d places, which is no square", places)
	}
}

func (c *towerConfig) readClips(k *models.Keys) {
	c.framePatches = k.IntOr("kimi.video.frame_patch_limit", 1, defaultFramePatches)
	c.itemPatches = k.IntOr("kimi.video.patch_limit", 0, 0)
	layout := media.LayoutChunks
	if c.interleaved {
		layout = media.LayoutClip
	}
	c.clip = media.ClipRule{
		Layout:      media.ClipLayout(k.StrOr("kimi.video.layout", string(layout))),
		FPS:         k.PositiveOr("kimi.video.sample_fps", media.DefaultFPS),
		MaxFrames:   k.IntOr("kimi.video.max_frames", 0, 0),
		ChunkFrames: k.IntOr("kimi.video.frames_per_chunk", 1, c.posTime),
		Timestamps:  k.StrOr("kimi.video.timestamp_mode", "hh:mm:ss.fff"),
		Untrained:   c.interleaved, // Kimi-VL has no video processor
	}
	if l := c.clip.Layout; l != media.LayoutClip && l != media.LayoutChunks {
		k.Failf("kimi.video.layout", "%q, want clip or chunks", l)
	}
	if c.clip.ChunkFrames > c.posTime {
		k.Failf("kimi.video.frames_per_chunk", "%d, but vision.pos_emb_time is %d", c.clip.ChunkFrames, c.posTime)
	}
	if _, err := media.Timestamp(0, c.clip.Timestamps); err != nil {
		k.Failf("kimi.video.timestamp_mode", "%v", err)
	}
}
