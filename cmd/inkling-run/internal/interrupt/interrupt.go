// Package interrupt runs work that ctrl-C stops.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"
)

// Err is the result of work that was told to stop.
var Err = errors.New("interrupted")

// grace is how long the program waits at its end for work that was told to stop.
const grace = 800 * time.Millisecond

// Run runs do with a context that ctrl-C ends, and returns its error,
// or Err if it stopped for the signal or for the end of ctx.
func Run(ctx context.Context, do func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if err := do(ctx); err == nil || ctx.Err() == nil {
		return err
	}
	return Err
}

// RunOrLeave is interruptible for work that may not listen, such as reading
// from a pipe. After the grace it is left behind: the program must end then.
func RunOrLeave(ctx context.Context, do func(context.Context) error) error {
	return Run(ctx, func(ctx context.Context) error {
		done := make(chan error, 1)
		go func() { done <- do(ctx) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
		}
		select {
		case err := <-done:
			return err
		case <-time.After(grace):
			return Err
		}
	})
}
