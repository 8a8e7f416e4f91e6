package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// faults are what clients do to a server's connections, and its end while it works:
// faults that need the server as a process of its own. Those of requests are in
// internal/server.
func faults(ctx context.Context, o *options, s *server) error {
	items, err := readItems(filepath.Join(o.testdata, "inkling-tiny-eval"))
	if err != nil {
		return err
	}
	var queries []*query
	for _, it := range items {
		queries = append(queries, it.openAI())
	}
	if _, err := queries[0].check(ctx, http.DefaultClient, s.url); err != nil { // loads the model
		return err
	}
	for _, f := range []struct {
		name string
		try  func(context.Context, *server, []*query) error
	}{
		{"idle connections", manyIdle},
		{"slow headers", slowHeaders},
		{"a large header", largeHeader},
		{"a signal while streams run", drain},
	} {
		start := time.Now()
		if err := f.try(ctx, s, queries); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		fmt.Printf("%s: as it should be, %.1f s\n", f.name, time.Since(start).Seconds())
	}
	return nil
}

// idleConnections is how many connections a server is to bear, as far as the
// system lets this program open them.
const idleConnections = 10_000

// manyIdle opens connections and does nothing with every other one, and nothing
// more after a request with the rest. Answers are right meanwhile.
func manyIdle(ctx context.Context, s *server, queries []*query) error {
	before, err := s.settled(ctx)
	if err != nil {
		return err
	}
	n := idleConnections
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < uint64(n+200) {
		n = int(limit.Cur) - 200
	}
	addr := strings.TrimPrefix(s.url, "http://")
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for i := range n {
		c, err := net.DialTimeout("tcp", addr, 10*time.Second)
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		conns = append(conns, c)
		if i%2 == 0 {
			continue
		}
		if err := healthy(c); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	during, err := s.metrics(ctx)
	if err != nil {
		return err
	}
	for _, q := range queries[:5] {
		if _, err := q.check(ctx, http.DefaultClient, s.url); err != nil {
			return fmt.Errorf("with %d idle connections: %w", n, err)
		}
	}
	for _, c := range conns {
		c.Close()
	}
	after, err := s.settled(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d idle connections: %.0f fds, %.0f goroutines, RSS %.1f MiB (%.1f before, %.1f after)\n",
		n, during.fds, during.goroutines, during.rss/(1<<20), before.rss/(1<<20), after.rss/(1<<20))
	if during.fds < float64(n)/2 {
		return fmt.Errorf("the server has %.0f descriptors only", during.fds)
	}
	after.heap = before.heap // it is as the last collection left it, with the connections
	return checkLeft(before, after)
}

// healthy asks for /health on a connection and leaves it open.
func healthy(c net.Conn) error {
	if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// slowHeaders sends headers a byte at a time. The server ends that, whatever comes.
func slowHeaders(ctx context.Context, s *server, queries []*query) error {
	const n, limit = 200, 20 * time.Second
	var cut atomic.Int32
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				return
			}
			defer c.Close()
			for start := time.Now(); time.Since(start) < limit; time.Sleep(500 * time.Millisecond) {
				if _, err := io.WriteString(c, "G"); err != nil {
					cut.Add(1)
					return
				}
			}
		})
	}
	_, err := queries[1].check(ctx, http.DefaultClient, s.url)
	clients.Wait()
	if got := cut.Load(); got != n {
		err = errors.Join(err, fmt.Errorf("%d of %d connections were cut within %s", got, n, limit))
	}
	return err
}

// largeHeader sends one that no client needs.
func largeHeader(ctx context.Context, s *server, _ []*query) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/health", nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Large", strings.Repeat("x", 200<<10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// drain sends SIGTERM while streams run, which come to their ends; new requests
// are refused.
func drain(ctx context.Context, s *server, queries []*query) error {
	n := s.o.parallel // as many as begin at once
	longest := slices.SortedFunc(slices.Values(queries), func(a, b *query) int {
		return cmp.Compare(len(b.want.reasoning+b.want.content), len(a.want.reasoning+a.want.content))
	})
	begun, errs := make(chan struct{}, n), make(chan error, n)
	for i := range n {
		q := *longest[i]
		read, once := q.read, sync.OnceFunc(func() { begun <- struct{}{} })
		q.read = func(r io.Reader, first func()) (answer, error) {
			once() // the header has come
			return read(r, first)
		}
		go func() {
			_, err := q.check(ctx, http.DefaultClient, s.url)
			if err != nil {
				err = fmt.Errorf("%s: %w", q.name, err)
			}
			errs <- err
			once()
		}()
	}
	for range n {
		<-begun
	}
	if len(errs) == n {
		return errors.New("all streams have ended before the signal")
	}
	ended := make(chan error, 1)
	go func() { ended <- s.end(syscall.SIGTERM) }()
	var failed []error
	for range n {
		failed = append(failed, <-errs)
	}
	if err := <-ended; err != nil {
		failed = append(failed, fmt.Errorf("the server ends with %w:\n%s", err, s.log.String()))
	}
	if _, err := queries[0].check(ctx, &http.Client{}, s.url); err == nil {
		failed = append(failed, errors.New("the server still answers"))
	}
	return errors.Join(failed...)
}
