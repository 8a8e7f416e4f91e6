// Package kimik25 is the Kimi-K2.5 and Kimi-VL family: a decoder of the
// DeepSeek-V3 type, whose heads share one compressed latent row per token and
// whose layers are mixtures of experts (text.go, attention.go, feedforward.go),
// and MoonViT, a tower with attention over whole pictures and clips, with the
// projector behind it (tower.go, projector.go). Other text models of the
// DeepSeek-V3 type run here too.
package kimik25

import "github.com/inkling-go/inkling/models"

func init() {
	models.Register("deepseek2", open)
	for _, kind := range []string{"kimik25", "kimivl"} {
		models.RegisterProjector(kind, "deepseek2", openProjectorKind(kind))
	}
}
