package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"
)

// errInterrupted is the result of work that was told to stop.
var errInterrupted = errors.New("interrupted")

// grace is how long the program waits at its end for work that was told to stop.
const grace = 800 * time.Millisecond

// interruptible runs do with a context that ctrl-C ends, and returns its error,
// or errInterrupted if it stopped for the signal or for the end of ctx.
func interruptible(ctx context.Context, do func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	if err := do(ctx); err == nil || ctx.Err() == nil {
		return err
	}
	return errInterrupted
}

// abandonable is interruptible for work that may not listen, such as reading
// from a pipe. After the grace it is left behind: the program must end then.
func abandonable(ctx context.Context, do func(context.Context) error) error {
	return interruptible(ctx, func(ctx context.Context) error {
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
			return errInterrupted
		}
	})
}
