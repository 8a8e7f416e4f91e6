package kimik25

import (
	"github.com/inkling-go/inkling/convert"
)

// rope is how positions turn queries and keys.
type rope struct {
	theta float64
	yarn  *yarn // nil for plain rotation
}

// yarn stretches the rotation beyond the context of pretraining.
type yarn struct {
	factor             float64
	original           int64 // original_max_position_embeddings
	betaFast, betaSlow float64
	mscaleAllDim       float64
}

// parseRope reads the rotation: rope_theta and rope_scaling in the published
// spelling, one object rope_parameters in the port's. What both have must agree.
func parseRope(f *convert.Fields) rope {
	port, published := f.Object("rope_parameters"), f.Object("rope_scaling")
	r := rope{theta: f.FloatOr(0, "rope_theta")}
	switch {
	case port != nil && r.theta == 0:
		r.theta = port.Float("rope_theta")
	case port != nil:
		mustAgree(port, "rope_theta", r.theta)
	case r.theta == 0:
		r.theta = f.Float("rope_theta")
	}
	if r.theta <= 0 {
		f.Failf("%s is %v, want more than 0", f.Name("rope_theta"), r.theta)
	}
	switch {
	case port == nil && published == nil:
		return r
	case port == nil:
		r.yarn = parseYarn(published)
	case published == nil:
		r.yarn = parseYarn(port)
	default:
		r.yarn = parseYarn(port)
		if y := parseYarn(published); (y == nil) != (r.yarn == nil) || y != nil && *y != *r.yarn {
			f.Failf("rope_parameters and rope_scaling disagree")
		}
	}
	return r
}

// mustAgree refuses another value than the one known from elsewhere.
func mustAgree(f *convert.Fields, name string, want float64) {
	if got := f.FloatOr(want, name); got != want {
		f.Failf("%s is %v, elsewhere %v", f.Name(name), got, want)
	}
}

// parseYarn reads the scaling; nil if there is none.
func parseYarn(f *convert.Fields) *yarn {
	switch kind := f.StrOr("default", "rope_type", "type"); kind {
	case "default":
		return nil
	case "yarn":
	default:
		f.Unsupportedf("%s is %q, want yarn", f.Name("rope_type"), kind)
		return nil
	}
	y := &yarn{
		factor:       f.Float("factor"),
		original:     f.Int("original_max_position_embeddings"),
		betaFast:     f.FloatOr(32, "beta_fast"),
		betaSlow:     f.FloatOr(1, "beta_slow"),
		mscaleAllDim: f.FloatOr(0, "mscale_all_dim"),
	}
	// GGUF holds one of the two. They are equal in all released models, and then cos
	// and sin have no factor of their own.
	if m := f.FloatOr(1, "mscale"); m != y.mscaleAllDim {
		f.Unsupportedf("%s is %v and mscale_all_dim %v, want the same", f.Name("mscale"), m, y.mscaleAllDim)
	}
	if y.factor < 1 {
		f.Failf("%s is %v, want at least 1", f.Name("factor"), y.factor)
	}
	f.Positive(map[string]int64{"original_max_position_embeddings": y.original})
	return y
}
