package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// bench keeps many streams open for some time, with clients that go away at
// random, and then kills the server and starts it again under their eyes.
func bench(ctx context.Context, o *options, s *server) error {
	items, err := readItems(filepath.Join(o.testdata, "inkling-tiny-eval"))
	if err != nil {
		return err
	}
	var queries []*query
	for _, it := range items {
		queries = append(queries, it.openAI())
	}
	if err := alone(ctx, s, queries); err != nil {
		return err
	}
	before, err := s.metrics(ctx)
	if err != nil {
		return err
	}
	t := newTally()
	all, err := s.load(ctx, o, o.duration, func(ctx context.Context, rng *rand.Rand, client *http.Client) {
		q := queries[rng.IntN(len(queries))]
		if rng.IntN(10) == 0 {
			t.cancelled(q, q.leave(ctx, client, s.url, rng))
			return
		}
		took, err := q.check(ctx, client, s.url)
		t.add(q, took, err)
	})
	if err != nil {
		return err
	}
	after, err := s.idle(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d streams, --parallel %d, %s\n", o.streams, o.parallel, o.duration)
	t.print(os.Stdout)
	printTokens(after, before, o.duration)
	printSamples(os.Stdout, all)
	return errors.Join(t.err(), checkFlat(all), s.restart(ctx, o, queries))
}

// alone asks for everything once, one after another: the answers that all later
// ones are compared with are right to begin with.
func alone(ctx context.Context, s *server, queries []*query) error {
	t := newTally()
	start := time.Now()
	for i, q := range queries {
		took, err := q.check(ctx, http.DefaultClient, s.url)
		if err != nil {
			return fmt.Errorf("%s, alone: %w", q.name, err)
		}
		if i > 0 { // the first one loads the model
			t.add(q, took, nil)
		}
	}
	took := time.Since(start)
	m, err := s.metrics(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d requests alone, %.1f s\n", len(queries), took.Seconds())
	t.print(os.Stdout)
	printTokens(m, sample{}, took)
	return nil
}

// printTokens says what the tokens between two samples took.
func printTokens(after, before sample, took time.Duration) {
	tokens, seconds := after.generated-before.generated, after.seconds-before.seconds
	fmt.Printf("tokens of answers: %.0f, %.0f a second; %.1f seconds of processors, %.1f ms for a token, prompts and media included\n",
		tokens, tokens/took.Seconds(), seconds, 1000*seconds/tokens)
}

// load runs clients, each with random numbers and connections of its own, until
// the time is over and each has come to an end.
func (s *server) load(ctx context.Context, o *options, d time.Duration, one func(context.Context, *rand.Rand, *http.Client)) ([]sample, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	deadline := time.Now().Add(d)
	watching, stop := context.WithCancel(ctx)
	samples := make(chan []sample, 1)
	go func() { samples <- watch(watching, s, max(d/120, 200*time.Millisecond)) }()
	var clients sync.WaitGroup
	for i := range o.streams {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(o.seed, uint64(i)))
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for time.Now().Before(deadline) && ctx.Err() == nil && s.alive() == nil {
				one(ctx, rng, &http.Client{Transport: transport})
			}
		})
	}
	clients.Wait()
	stop()
	all := <-samples
	return all, errors.Join(context.Cause(ctx), s.alive())
}

// leave sends a query and goes away at some point before its answer has ended.
func (q *query) leave(ctx context.Context, client *http.Client, url string, rng *rand.Rand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if rng.IntN(2) == 0 { // while it waits, or is computed
		time.AfterFunc(time.Duration(rng.Int64N(int64(time.Second))), cancel)
	}
	resp, err := q.send(ctx, client, url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.CopyN(io.Discard, resp.Body, rng.Int64N(2000))
	return err
}

// idle waits until the server has nothing to do.
func (s *server) idle(ctx context.Context) (m sample, err error) {
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for range 300 {
		if m, err = s.metrics(ctx); err != nil || m.active == 0 && m.waiting == 0 {
			return m, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return m, fmt.Errorf("%.0f requests are at work and %.0f wait 30 s after the last client has gone", m.active, m.waiting)
}

// restart kills the server while all clients ask, and starts it again. Clients
// try again until they have their answers.
func (s *server) restart(ctx context.Context, o *options, queries []*query) error {
	const limit = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := newTally()
	var clients sync.WaitGroup
	for i := range o.streams {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(o.seed+1, uint64(i)))
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for range 2 {
				q := queries[rng.IntN(len(queries))]
				t.persist(ctx, q, &http.Client{Transport: transport}, s.url)
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	_ = s.kill() // it reports the signal
	time.Sleep(300 * time.Millisecond)
	if err := s.start(); err != nil {
		cancel()
		clients.Wait()
		return err
	}
	clients.Wait()
	fmt.Printf("killed and restarted: %d answers after %d new attempts\n", t.answers(), t.retries)
	if t.retries == 0 {
		return errors.New("no client has noticed that the server was killed")
	}
	return t.err()
}
