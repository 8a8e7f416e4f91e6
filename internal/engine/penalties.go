package engine

// penalise weakens tokens of the past. The repeat penalty is that of CTRL
// (Keskar et al. 2019, section 4.1) in the form that divides positive and
// multiplies negative logits, each recent token once, those of the prompt
// too. Presence and frequency penalties are OpenAI's: they count the answer.
//
//	ids:    the tokens so far, the last at the end
//	answer: where the answer begins in them
func (s *sampler) penalise(w *workspace, ids []int32, answer int) {
	if s.RepeatPenalty != 1 && s.RepeatLastN != 0 {
		recent := ids
		if s.RepeatLastN > 0 {
			recent = ids[max(0, len(ids)-s.RepeatLastN):]
		}
		w.each(recent, func(l float32, _ int32) float32 {
			if l > 0 {
				return l / s.RepeatPenalty
			}
			return l * s.RepeatPenalty
		})
	}
	if s.PresencePenalty != 0 || s.FrequencyPenalty != 0 {
		w.each(ids[answer:], func(l float32, n int32) float32 {
			return l - s.PresencePenalty - s.FrequencyPenalty*float32(n)
		})
	}
}

// each changes the logit of each token that ids hold, once, by f, which is told
// how often they hold it.
func (w *workspace) each(ids []int32, f func(logit float32, n int32) float32) {
	for _, id := range ids {
		if int(id) < len(w.counts) {
			w.counts[id]++
		}
	}
	for _, id := range ids {
		if int(id) >= len(w.counts) || w.counts[id] == 0 {
			continue
		}
		w.logits[id] = f(w.logits[id], w.counts[id])
		w.counts[id] = 0
	}
}
