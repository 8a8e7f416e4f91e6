package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/media"
	"github.com/inkling-go/inkling/models"
)

// What towers are measured with: a square picture of so many rows, and so long a sound.
const (
	pictureRows  = 100
	pictureSide  = 1 << 14 // pixels, at most
	soundSeconds = 60
)

// Tower is how the time of a medium compares with that of text.
type Tower struct {
	Rows      int     `json:"rows"`       // that the medium becomes
	OfPrefill float64 `json:"of_prefill"` // time for them, of that for a prompt of as many tokens
}

// medium is a picture or a sound that a tower is measured with.
type medium struct {
	name   string
	rows   int
	encode func(dst []float32) ([]float32, error) // from pixels or samples: tiles and features are made anew
}

// prefill is the prompt of as many tokens.
func (m medium) prefill() test { return test{prompt: m.rows, parallel: 1} }

// towerPositions is what the prompts hold that media are compared with: the rows of
// a sound are known before its projector is open.
func towerPositions() int { return max(pictureRows, media.MelFrames(soundSeconds*media.SampleRate)) }

// drawMedia makes up a medium for each tower of a projector.
func drawMedia(p models.Projector) ([]medium, error) {
	var list []medium
	rng := rand.New(rand.NewPCG(1, 1))
	if p.HasImage() {
		im, err := drawPicture(p, rng)
		if err != nil {
			return nil, err
		}
		rows := p.ImageRows(im.W, im.H)
		list = append(list, medium{fmt.Sprintf("image%d", rows), rows, func(dst []float32) ([]float32, error) { return p.EncodeImage(dst, im) }})
	}
	if a, ok := p.(models.AudioProjector); ok && p.HasAudio() {
		samples := make([]float32, soundSeconds*media.SampleRate)
		for i := range samples {
			samples[i] = rng.Float32() - 0.5
		}
		list = append(list, medium{fmt.Sprintf("audio%ds", soundSeconds), a.AudioRows(len(samples)), func(dst []float32) ([]float32, error) { return a.EncodeAudio(dst, samples) }})
	}
	return list, nil
}

// drawPicture makes up the largest square picture that becomes pictureRows rows, or
// the next fewer that a square can have.
func drawPicture(p models.Projector, rng *rand.Rand) (*media.Image, error) {
	side := 0
	for n := 1; n <= pictureSide; n++ {
		rows := p.ImageRows(n, n)
		if rows > pictureRows {
			break
		}
		if rows > 0 { // 0: refused
			side = n
		}
	}
	if side == 0 {
		return nil, fmt.Errorf("the projector takes no square picture of up to %d rows", pictureRows)
	}
	im := &media.Image{W: side, H: side, Pix: make([]uint8, 3*side*side)}
	for i := range im.Pix {
		im.Pix[i] = uint8(rng.Uint32())
	}
	return im, nil
}

// result measures a medium on the backend of its tower. prefill is that of the prompt of
// as many tokens.
func (m medium) result(ctx context.Context, be *binding.Backend, o Options, prefill Result) (r Result, err error) {
	r = Result{Test: m.name, Parallel: 1}
	count := counting(be, &r)
	if r.Samples, err = m.measure(ctx, o); err != nil {
		return r, err
	}
	count()
	r.Reads = nil // towers have no experts
	r.Mean, r.Spread = meanAndSpread(r.Samples)
	r.Tower = &Tower{m.rows, prefill.Mean / r.Mean}
	return r, nil
}

// measure encodes a medium and returns rows a second.
func (m medium) measure(ctx context.Context, o Options) (speeds []float64, err error) {
	runs := o.Repeat
	if o.Warmup {
		runs++
	}
	var rows []float32 // in the same memory each time, as in the engine
	for i := range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		began := time.Now()
		if rows, err = m.encode(rows); err != nil {
			return nil, err
		}
		if i >= runs-o.Repeat {
			speeds = append(speeds, float64(m.rows)/time.Since(began).Seconds())
		}
	}
	return speeds, nil
}

// openProjector loads the towers as the engine does: they are small, and on the main device.
func (s *Subject) openProjector(p models.Params) (err error) {
	if err := models.CheckProjector(s.mmproj, s.File); err != nil {
		return err
	}
	p.Backend, p.Place, p.MTP, p.MTPDepths = s.be.Parts()[0], models.Placement{}, nil, 0
	if s.projector, err = models.OpenProjector(s.mmproj, p); err != nil {
		return err
	}
	if got, want := s.projector.Embd(), s.model.Config().Embd; got != want {
		return fmt.Errorf("%s: its rows have %d values, those of %s have %d: the two files are of different models", s.mmproj.Path(), got, s.File.Path(), want)
	}
	return nil
}
