// Package inkling is the Inkling architecture: a decoder without rotary
// embedding, whose attention knows positions by a banded relative bias and
// short convolutions, with experts that share one softmax with always-on ones
// (text.go, attention.go, feedforward.go), and two small towers that turn image
// tiles and audio frames into rows for it (vision.go, audio.go).
package inkling

import "github.com/inkling-go/inkling/models"

func init() {
	models.Register("inkling", open)
	models.RegisterProjector("inkling", "inkling", openProjector)
}
