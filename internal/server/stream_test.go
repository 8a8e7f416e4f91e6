package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// endless is a request whose answer must be longer than the context.
var endless = `{"model":"tiny","temperature":1,"reasoning_effort":"none","regex":"` + strings.Repeat("[a-z]{1000}", 12) + `","stream":true,"messages":[{"role":"user","content":"Hi"}]}`

// begin sends a request and returns its answer once that has begun.
func begin(t *testing.T, ctx context.Context, url, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(resp.Body)
		t.Fatalf("status %d: %s", resp.StatusCode, data)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return resp
}

func (s *Server) active() (active, waiting int) {
	for _, r := range s.pool.list() {
		active, waiting = active+r.Stats.Active, waiting+r.Stats.Waiting
	}
	return active, waiting
}

func (s *Server) busy() int {
	n := 0
	for _, r := range s.pool.list() {
		n += r.Busy
	}
	return n
}

// TestDisconnect: the sequence of a client that has gone is free again.
func TestDisconnect(t *testing.T) {
	o := testOptions(t)
	o.Engine.Parallel, o.Engine.Queue = 1, 1
	s, h := newTestServer(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	begin(t, ctx, h.URL, endless)
	cancel()
	eventually(t, "the request has ended", func() bool { return s.busy() == 0 })
	var resp chatResponse
	askOK(t, h, "/v1/chat/completions", `{`+greedy+`,"messages":[{"role":"user","content":"What is the capital of France?"}]}`, &resp)
	if got := resp.Choices[0].Message.Content.text; got != "The capital of France is Paris." {
		t.Errorf("answered %q", got)
	}
}

// TestQueueFull: requests beyond the queue are refused at once and told when to
// try again.
func TestQueueFull(t *testing.T) {
	o := testOptions(t)
	o.Engine.Parallel, o.Engine.Queue = 1, 1
	s, h := newTestServer(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin(t, ctx, h.URL, endless)
	go func() { // waits
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/v1/chat/completions", strings.NewReader(endless))
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	eventually(t, "one works and one waits", func() bool { a, w := s.active(); return a == 1 && w == 1 })
	resp, err := http.Post(h.URL+"/v1/chat/completions", "application/json", strings.NewReader(endless))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	if _, typ, _, code := errorOf(t, data); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "1" || typ != "rate_limit_error" || code != "rate_limit_exceeded" {
		t.Errorf("status %d, Retry-After %q: %s", resp.StatusCode, resp.Header.Get("Retry-After"), data)
	}
}

// TestSlowClient: a client that does not read is cut off.
func TestSlowClient(t *testing.T) {
	o := testOptions(t)
	o.ClientTimeout = 50 * time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewUnstartedServer(s)
	h.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew {
			_ = c.(*net.TCPConn).SetWriteBuffer(1) // the system takes its least
		}
	}
	h.Start()
	defer h.Close()
	defer s.Close()
	conn, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	// Log-probabilities make the pieces large enough to fill the buffers between.
	body := strings.Replace(endless, `"stream"`, `"logprobs":true,"top_logprobs":20,"stream"`, 1)
	_, err = io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+quote(len(body))+"\r\n\r\n"+body)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the request has begun", func() bool { return s.busy() > 0 })
	eventually(t, "the request has ended", func() bool { return s.busy() == 0 })
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	if n := s.metrics.models["tiny"].answers["error"]; n == 0 {
		t.Error("the answer came to its end")
	}
}

// TestSlowBody: a client that stops in the middle of its request is answered and
// cut off; one that has sent it may wait.
func TestSlowBody(t *testing.T) {
	o := testOptions(t)
	o.ClientTimeout = 50 * time.Millisecond
	_, h := newTestServer(t, o)
	conn, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // to its end: the connection is closed
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("error %v, answered %q", err, answer)
	}
	var resp chatResponse
	askOK(t, h, "/v1/chat/completions", `{`+greedy+`,"reasoning_effort":"high","messages":[{"role":"user","content":"What is 47 + 38?"}]}`, &resp)
	if got := resp.Choices[0].Message.Content.text; got != "The answer is 85." {
		t.Errorf("answered %q", got)
	}
}

// TestDrain: a server that drains refuses new requests and ends those at work,
// which are told so when their time is over.
func TestDrain(t *testing.T) {
	s, h := newTestServer(t, testOptions(t))
	resp := begin(t, context.Background(), h.URL, endless)
	s.Drain()
	for path, want := range map[string]int{"/health": 503, "/v1/models": 503, "/": 200} {
		got, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, got.StatusCode, want)
		}
		if want == 503 && path != "/health" && got.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	if s.busy() != 1 {
		t.Error("the request at work has ended")
	}
	s.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n\n")
	last := strings.TrimPrefix(lines[len(lines)-1], "data: ")
	if msg, typ, _, _ := errorOf(t, []byte(last)); typ != "server_error" || !strings.Contains(msg, "shutting down") {
		t.Errorf("the stream ends with %s", last)
	}
}

// TestPanic: a handler that panics is answered for, and the server goes on.
func TestPanic(t *testing.T) {
	s, h := newTestServer(t, testOptions(t))
	s.register([]route{{method: http.MethodGet, path: "/panic", handle: func(http.ResponseWriter, *http.Request) error { panic("secret") }}})
	resp, err := http.Get(h.URL + "/panic")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 500 || strings.Contains(string(data), "secret") || !json.Valid(data) {
		t.Errorf("status %d: %s", resp.StatusCode, data)
	}
	if resp, err := http.Get(h.URL + "/health"); err != nil || resp.StatusCode != 200 {
		t.Errorf("the server does not go on: %v", err)
	}
}
