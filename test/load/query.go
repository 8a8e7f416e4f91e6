package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// query is a request with the answer that it must get.
type query struct {
	name, path string
	body       []byte
	read       func(r io.Reader, first func()) (answer, error)
	want       answer
}

// timing is how long a query took.
type timing struct {
	first time.Duration // until the answer began
	whole time.Duration
}

// streamError is an error that a stream ends with.
type streamError struct{ text string }

func (e *streamError) Error() string { return "the stream says: " + e.text }

// statusError is an answer with another status than 200.
type statusError struct {
	status int
	body   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %.300s", e.status, e.body) }

// wrongAnswer is an answer that is not the one of the query alone.
type wrongAnswer struct{ got, want answer }

func (e *wrongAnswer) Error() string { return fmt.Sprintf("answered %s, want %s", e.got, e.want) }

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // values of this program
	}
	return data
}

// send posts the body of a query.
func (q *query) send(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+q.path, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return nil, err
		}
		return nil, &statusError{resp.StatusCode, string(data)}
	}
	return resp, nil
}

// ask sends a query and returns its answer.
func (q *query) ask(ctx context.Context, client *http.Client, url string) (a answer, t timing, err error) {
	start := time.Now()
	resp, err := q.send(ctx, client, url)
	if err != nil {
		return a, t, err
	}
	defer resp.Body.Close()
	a, err = q.read(resp.Body, func() {
		if t.first == 0 {
			t.first = time.Since(start)
		}
	})
	t.whole = time.Since(start)
	return a, t, err
}

// check is ask with a look at the answer.
func (q *query) check(ctx context.Context, client *http.Client, url string) (timing, error) {
	a, t, err := q.ask(ctx, client, url)
	if err == nil && a != q.want {
		err = &wrongAnswer{a, q.want}
	}
	return t, err
}

// readEvents calls f with the data of each server-sent event.
func readEvents(r io.Reader, f func(data string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := f(data); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}
