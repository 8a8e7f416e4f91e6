package engine

import (
	"fmt"
	"math"
)

// Sampling says how the next token is chosen from the logits. The stages run
// in llama.cpp's order: penalties, top-k, top-p, min-p, temperature.
type Sampling struct {
	Temperature   float32 // 0: the most likely token, always
	TopK          int     // keep the k most likely; 0: all
	TopP          float32 // keep the most likely that together have this probability; 1: all
	MinP          float32 // keep those with at least this share of the most likely one's probability; 0: all
	RepeatPenalty float32 // divides (or multiplies, if negative) the logits of recent tokens; 1: off
	RepeatLastN   int     // how many tokens are recent; -1: the whole context

	// Taken from the logits of tokens that the answer holds: once, and for each
	// time that it holds them; 0: off.
	PresencePenalty, FrequencyPenalty float32

	Seed uint64 // of the random numbers; the same seed gives the same text
}

// DefaultSampling is plain sampling at temperature 1.
func DefaultSampling() Sampling {
	return Sampling{Temperature: 1, TopP: 1, RepeatPenalty: 1, RepeatLastN: 64}
}

// Validate names the first setting that is out of range.
func (s Sampling) Validate() error {
	finite := func(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
	switch {
	case !finite(s.Temperature) || s.Temperature < 0:
		return fmt.Errorf("temperature %g: want 0 or more", s.Temperature)
	case s.TopK < 0:
		return fmt.Errorf("top-k %d: want 0 (all) or more", s.TopK)
	case !finite(s.TopP) || s.TopP <= 0 || s.TopP > 1:
		return fmt.Errorf("top-p %g: want more than 0, at most 1", s.TopP)
	case !finite(s.MinP) || s.MinP < 0 || s.MinP > 1:
		return fmt.Errorf("min-p %g: want 0 to 1", s.MinP)
	case !finite(s.RepeatPenalty) || s.RepeatPenalty <= 0:
		return fmt.Errorf("repeat-penalty %g: want more than 0 (1: off)", s.RepeatPenalty)
	case !(abs(s.PresencePenalty) <= 2):
		return fmt.Errorf("presence-penalty %g: want -2 to 2", s.PresencePenalty)
	case !(abs(s.FrequencyPenalty) <= 2):
		return fmt.Errorf("frequency-penalty %g: want -2 to 2", s.FrequencyPenalty)
	case s.RepeatLastN < -1:
		return fmt.Errorf("repeat-last-n %d: want -1 (whole context), 0 (off) or more", s.RepeatLastN)
	}
	return nil
}

func abs(v float32) float32 { return float32(math.Abs(float64(v))) }
