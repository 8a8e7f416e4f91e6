package inkling

import (
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/media"
)

// PublishedTiles is how the published checkpoints' processor cuts pictures.
func PublishedTiles() media.TileConfig {
	return media.TileConfig{
		Patch: 40, Temporal: 2,
		Mean:               [3]float32{0.48145466, 0.4578275, 0.40821073},
		Std:                [3]float32{0.26862954, 0.26130258, 0.27577711},
		RescaleMaxLongEdge: defaultMaxLongEdge,
	}
}

// ReadTiles reads from an mmproj file how its image tower wants pictures cut.
func ReadTiles(f *gguf.File) (media.TileConfig, error) {
	r := newTowerReader(f)
	cfg := r.tiles()
	return cfg, r.Err()
}
