package server

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// ParseKeepAlive reads how long an idle model stays, as Ollama has it: a duration
// (5m, 1h30m), a number of seconds, 0 for not at all, or anything below 0 for
// ever.
func ParseKeepAlive(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return normalKeepAlive(d), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return 0, invalid("", "%q is neither a duration (5m) nor a number of seconds", s)
	}
	return keepSeconds(f), nil
}

func keepSeconds(f float64) time.Duration {
	if f < 0 || f > math.MaxInt64/float64(time.Second)/2 {
		return Forever
	}
	return normalKeepAlive(time.Duration(f * float64(time.Second)))
}

func normalKeepAlive(d time.Duration) time.Duration {
	if d < 0 {
		return Forever
	}
	return d
}

// keepAliveField is a keep-alive in a request: a string, or a number of seconds.
type keepAliveField struct {
	d *time.Duration // nil: not given
}

func (k *keepAliveField) decode(_ *decoder, tok json.Token, path string) error {
	var d time.Duration
	switch t := tok.(type) {
	case string:
		parsed, err := ParseKeepAlive(t)
		if err != nil {
			return invalid(path, "%w", err)
		}
		d = parsed
	case json.Number:
		f, err := t.Float64()
		if err != nil {
			return invalid(path, "%s is out of range", t)
		}
		d = keepSeconds(f)
	default:
		return invalid(path, "is %s, want a string or a number", typeName(tok))
	}
	k.d = &d
	return nil
}
