package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// transientError is a failure that may pass.
type transientError struct {
	err   error
	after time.Duration // that the server asks to wait; 0 if it does not say
}

func (e *transientError) Error() string { return e.err.Error() }
func (e *transientError) Unwrap() error { return e.err }

// retryPolicy says how often a request is made again, and when.
type retryPolicy struct {
	attempts    int           // in a row without any progress
	first, last time.Duration // pauses double from the first up to the last
	stall       time.Duration // without a byte, after which a connection counts as lost
	longest     time.Duration // that a server may ask to wait
}

var defaultRetry = retryPolicy{attempts: 6, first: time.Second / 2, last: 30 * time.Second, stall: time.Minute, longest: 5 * time.Minute}

// do calls f again while its error is transient.
func (p retryPolicy) do(ctx context.Context, f func() error) error {
	return p.doProgress(ctx, func() (bool, error) { return false, f() })
}

// doProgress is do for what can go on where it stopped: after progress the
// attempts begin to count anew.
func (p retryPolicy) doProgress(ctx context.Context, f func() (progress bool, err error)) error {
	for n := 1; ; n++ {
		progress, err := f()
		var transient *transientError
		if err == nil || !errors.As(err, &transient) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if progress {
			n = 1
		}
		if n >= p.attempts {
			return fmt.Errorf("%w (%d attempts)", err, n)
		}
		if transient.after > p.longest {
			return fmt.Errorf("%w (the server asks to wait %v)", err, transient.after)
		}
		if err := pause(ctx, max(transient.after, p.backoff(n))); err != nil {
			return err
		}
	}
}

// backoff is the pause after the nth failure in a row. Half of it is drawn, so
// that many clients do not come back at once.
func (p retryPolicy) backoff(n int) time.Duration {
	d := min(p.first<<(n-1), p.last)
	return d/2 + rand.N(d/2+1)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// retryAfter reads the header of that name: seconds, or a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(n, 0)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
