package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// soak mixes all kinds of clients, good and bad, over all APIs, and looks at what
// the server still holds when they have gone.
func soak(ctx context.Context, o *options, s *server) error {
	queries, err := soakQueries(ctx, o, s)
	if err != nil {
		return err
	}
	t, bad := newTally(), badRequests()
	one := func(ctx context.Context, rng *rand.Rand, client *http.Client) {
		q := queries[rng.IntN(len(queries))]
		switch n := rng.IntN(100); {
		case n < 60:
			took, err := q.check(ctx, client, s.url)
			t.add(q, took, err)
		case n < 72:
			t.cancelled(q, q.leave(ctx, client, s.url, rng))
		case n < 80:
			slow := *q
			slow.name, slow.read = "slow reader of "+q.name, slowly(q.read, rng)
			_, err := slow.check(ctx, client, s.url)
			t.count("slow readers", slow.name, err)
		case n < 92:
			b := bad[rng.IntN(len(bad))]
			t.count("bad requests", b.name, b.check(ctx, client, s.url))
		default:
			l := lookUps[rng.IntN(len(lookUps))]
			t.count("look-ups", l.path, l.check(ctx, client, s.url))
		}
	}

	warmUp := min(o.duration/8, time.Minute)
	if _, err := s.load(ctx, o, warmUp, one); err != nil {
		return err
	}
	before, err := s.settled(ctx)
	if err != nil {
		return err
	}
	all, err := s.load(ctx, o, o.duration-warmUp, one)
	if err != nil {
		return err
	}
	after, err := s.settled(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d clients, --parallel %d, %s after %s of warm-up\n", o.streams, o.parallel, o.duration-warmUp, warmUp)
	t.print(os.Stdout)
	printSamples(os.Stdout, all)
	fmt.Printf("idle before: %.0f goroutines, %.0f fds, heap %.1f MiB; after: %.0f, %.0f, %.1f\n",
		before.goroutines, before.fds, before.heap/(1<<20), after.goroutines, after.fds, after.heap/(1<<20))
	return errors.Join(t.err(), checkFlat(all), checkLeft(before, after))
}

// soakQueries are all requests that have an answer to compare with: those of the
// evaluation set over each API, and others whose answer is found out here.
func soakQueries(ctx context.Context, o *options, s *server) ([]*query, error) {
	items, err := readItems(filepath.Join(o.testdata, "inkling-tiny-eval"))
	if err != nil {
		return nil, err
	}
	var all []*query
	for _, it := range items {
		for _, q := range []*query{it.openAI(), it.ollama(), it.anthropic()} {
			if q != nil {
				all = append(all, q)
			}
		}
	}
	for _, q := range ownQueries() {
		if q.want, _, err = q.ask(ctx, http.DefaultClient, s.url); err != nil {
			return nil, fmt.Errorf("%s, alone: %w", q.name, err)
		}
		if q.want.content == "" && q.want.calls == "" {
			return nil, fmt.Errorf("%s, alone: no answer", q.name)
		}
		for range 10 { // as often as others of their kind
			all = append(all, q)
		}
	}
	return all, nil
}

// settled is what the server holds once it has nothing to do and all connections
// are closed. Goroutines end a moment after them.
func (s *server) settled(ctx context.Context) (m sample, err error) {
	if m, err = s.idle(ctx); err != nil {
		return m, err
	}
	for range 20 {
		next, err := s.idle(ctx)
		if err != nil {
			return m, err
		}
		m.goroutines, m.fds = min(m.goroutines, next.goroutines), min(m.fds, next.fds)
		select {
		case <-time.After(250 * time.Millisecond):
		case <-ctx.Done():
			return m, context.Cause(ctx)
		}
	}
	return m, nil
}

// checkLeft is an error if an idle server holds more than it did before.
func checkLeft(before, after sample) error {
	const few = 2 // of the runtime, and of the connection that asks
	var errs []error
	for _, c := range []struct {
		what          string
		before, after float64
		room          float64
	}{
		{"goroutines", before.goroutines, after.goroutines, few},
		{"file descriptors", before.fds, after.fds, few},
		{"bytes of the caches", before.cache, after.cache, 0},
		{"bytes of Go's heap", before.heap - before.saved, after.heap - after.saved, 8 << 20},
		{"bytes of C's heap that are not in use", before.held - before.used, after.held - after.used, 8 << 20},
	} {
		if c.after > c.before+c.room {
			errs = append(errs, fmt.Errorf("an idle server has %.0f %s, %.0f before", c.after, c.what, c.before))
		}
	}
	return errors.Join(errs...)
}
