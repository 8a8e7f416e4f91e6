package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// tally counts what became of requests.
type tally struct {
	mu      sync.Mutex
	first   []time.Duration
	whole   []time.Duration
	left    int // clients that went away
	retries int
	failed  int
	errs    []error        // the first few
	kinds   map[string]int // of requests: how many were answered as they should
}

func newTally() *tally { return &tally{kinds: map[string]int{}} }

// add counts a query that must have come to its answer.
func (t *tally) add(q *query, took timing, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.fail(fmt.Errorf("%s: %w", q.name, err))
		return
	}
	t.kinds[q.path]++
	t.first = append(t.first, took.first)
	t.whole = append(t.whole, took.whole)
}

// count counts a request whose times say nothing.
func (t *tally) count(kind, name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.fail(fmt.Errorf("%s: %w", name, err))
		return
	}
	t.kinds[kind]++
}

func (t *tally) fail(err error) {
	if t.failed++; len(t.errs) < 10 {
		t.errs = append(t.errs, err)
	}
}

// cancelled counts a query whose client went away; an answer of the server must
// be none but success.
func (t *tally) cancelled(q *query, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left++
	var status *statusError
	if errors.As(err, &status) {
		t.fail(fmt.Errorf("%s, to be cancelled: %w", q.name, err))
	}
}

// persist asks again as long as there is no server, or it has just begun to end.
func (t *tally) persist(ctx context.Context, q *query, client *http.Client, url string) {
	for {
		took, err := q.check(ctx, client, url)
		var status *statusError
		var stream *streamError
		var wrong *wrongAnswer
		if err == nil || errors.As(err, &status) || errors.As(err, &stream) || errors.As(err, &wrong) || ctx.Err() != nil {
			t.add(q, took, err)
			return
		}
		t.mu.Lock()
		t.retries++
		t.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
	}
}

func (t *tally) answers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.whole)
}

// err is what was wrong.
func (t *tally) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == 0 {
		return nil
	}
	return fmt.Errorf("%d requests failed: %w", t.failed, errors.Join(t.errs...))
}

// print writes counts and times.
func (t *tally) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(w, "right answers: %d, wrong or failed: %d, clients that went away: %d\n", len(t.whole), t.failed, t.left)
	for _, kind := range slices.Sorted(maps.Keys(t.kinds)) {
		fmt.Fprintf(w, "  %s: %d\n", kind, t.kinds[kind])
	}
	for _, c := range []struct {
		name string
		ds   []time.Duration
	}{{"time to first token", t.first}, {"time of an answer", t.whole}} {
		slices.Sort(c.ds)
		fmt.Fprintf(w, "%s: p50 %s, p90 %s, p99 %s, max %s\n", c.name, quantile(c.ds, 0.5), quantile(c.ds, 0.9), quantile(c.ds, 0.99), quantile(c.ds, 1))
	}
}

// quantile is the value that a share q of the sorted values does not exceed.
func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	return ds[min(len(ds)-1, int(q*float64(len(ds))))].Round(time.Millisecond)
}
