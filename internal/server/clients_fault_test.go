package server

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/inkling-go/inkling/internal/engine"
)

// dial sends the beginning of a request on a connection of its own.
func dial(t *testing.T, h *httptest.Server, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// request is a request as bytes.
func request(body string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// TestFaultDisconnect: a client that goes away, at whatever stage of its request,
// leaves nothing behind and disturbs nobody.
func TestFaultDisconnect(t *testing.T) {
	o := testOptions(t)
	o.Engine.Parallel = 1
	s, h := newTestServer(t, o)
	busy := func() bool { a, w := s.active(); return a+w > 0 || s.busy() > 0 }
	whole := strings.Replace(endless, `"stream":true`, `"stream":false`, 1)
	long := `{"model":"tiny","messages":[{"role":"user","content":"` + strings.Repeat("The happy cow sleeps at home. ", 250) + `"}]}`
	ask := strings.Replace(capital, `"a"`, `"tiny"`, 1)
	wantAnswer(t, h.URL, ask, paris) // loads the model
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	for _, tt := range []struct {
		name string
		sent string
		at   func() bool // when to go; nil: at once
	}{
		{name: "before a byte"},
		{name: "in the first line", sent: "POST /v1/ch"},
		{name: "in the header", sent: "POST /v1/chat/completions HTTP/1.1\r\nHost: loc"},
		{name: "before the body", sent: request(capital)[:len(request(capital))-len(capital)]},
		{name: "in the body", sent: request(capital)[:len(request(capital))-20]},
		{name: "with the request sent", sent: request(capital)},
		{name: "in the prompt", sent: request(long), at: busy},
		{name: "in the answer", sent: request(whole), at: func() bool { a, _ := s.active(); return a == 1 }},
		{name: "in the stream", sent: request(endless), at: func() bool { a, _ := s.active(); return a == 1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn := dial(t, h, tt.sent)
			if tt.at != nil {
				eventually(t, "the stage is reached", tt.at)
			}
			if tt.name == "in the stream" {
				if _, err := io.ReadFull(conn, make([]byte, 500)); err != nil {
					t.Fatal(err)
				}
			}
			conn.Close()
			eventually(t, "the request has ended", func() bool { return !busy() })
			wantAnswer(t, h.URL, ask, paris)
		})
	}
	t.Run("while it waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		begin(t, ctx, h.URL, endless)
		conn := dial(t, h, request(endless))
		eventually(t, "one waits", func() bool { _, w := s.active(); return w == 1 })
		conn.Close()
		eventually(t, "none waits", func() bool { a, w := s.active(); return a == 1 && w == 0 })
		cancel()
		eventually(t, "none works", func() bool { return !busy() })
		wantAnswer(t, h.URL, ask, paris)
	})
	http.DefaultClient.CloseIdleConnections()
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

// TestFaultDisconnectWhileLoading: the model is there for others who asked for it,
// and for nobody if there are none.
func TestFaultDisconnectWhileLoading(t *testing.T) {
	o := testOptions(t)
	s, h := newTestServer(t, o)
	gate := make(chan struct{})
	open := s.pool.open
	s.pool.open = func(ctx context.Context, eo engine.Options) (*engine.Engine, error) {
		<-gate
		return open(ctx, eo)
	}
	conn := dial(t, h, request(strings.Replace(capital, `"a"`, `"tiny"`, 1)))
	users := func() int {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		if l := s.pool.byName["tiny"]; l != nil {
			return l.users
		}
		return -1
	}
	eventually(t, "it is being loaded", func() bool { return users() == 1 })
	conn.Close()
	eventually(t, "nobody waits for it", func() bool { return users() == 0 })
	close(gate)
	wantAnswer(t, h.URL, strings.Replace(capital, `"a"`, `"tiny"`, 1), paris)
}

// endlessBody is a body of n bytes that counts what is taken of it.
type endlessBody struct{ n, taken int64 }

func (b *endlessBody) Read(p []byte) (int, error) {
	if b.taken >= b.n {
		return 0, io.EOF
	}
	n := min(int64(len(p)), b.n-b.taken)
	for i := range p[:n] {
		p[i] = ' '
	}
	b.taken += n
	return int(n), nil
}

// TestFaultHugeBody: of a body without end no more is read than one may have, and
// what that takes is bounded.
func TestFaultHugeBody(t *testing.T) {
	o := testOptions(t)
	o.MaxBody = 8 << 20
	_, h := newTestServer(t, o)
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/api/chat", "/api/generate", "/api/create", "/v1/messages"} {
		for _, length := range []int64{-1, 1 << 30} {
			body := &endlessBody{n: 1 << 30}
			req, err := http.NewRequest(http.MethodPost, h.URL+path, body)
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				if resp.StatusCode != http.StatusRequestEntityTooLarge {
					t.Errorf("%s: status %d", path, resp.StatusCode)
				}
				resp.Body.Close()
			} // else the connection was cut while the client still sent
			runtime.ReadMemStats(&after)
			const sockets = 16 << 20 // what two of them may hold
			if taken := body.taken; taken > o.MaxBody+sockets {
				t.Errorf("%s: %d bytes were read", path, taken)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 6*uint64(o.MaxBody) {
				t.Errorf("%s: %d bytes were allocated", path, n)
			}
		}
	}
}

// TestFaultManyBodies: clients that each send less than one may, but together more
// than fits, are told to come back; the room is there again when they have gone.
func TestFaultManyBodies(t *testing.T) {
	o := testOptions(t)
	o.MaxBody = 1 << 20
	s, h := newTestServer(t, o)
	const n = bodiesAtOnce + 3
	var conns []net.Conn
	for range n {
		conns = append(conns, dial(t, h, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat(" ", 990_000)))
	}
	eventually(t, "the room is full", func() bool { return s.bodies.left.Load() <= 16*o.MaxBody-16*990_000 })
	answers := make(chan string, n)
	for _, c := range conns {
		go func() {
			line := make([]byte, 12)
			if _, err := io.ReadFull(c, line); err != nil {
				line = nil // closed below, unanswered
			}
			answers <- string(line)
		}()
	}
	refused := 0
	count := func(line string) {
		if line == "" {
			return
		}
		refused++
		if line != "HTTP/1.1 503" {
			t.Errorf("answered %q", line)
		}
	}
	count(<-answers) // one at least is refused, however long that takes
	for _, c := range conns {
		c.Close()
	}
	for range n - 1 {
		count(<-answers)
	}
	if refused == 0 || refused > n-bodiesAtOnce {
		t.Errorf("%d of %d bodies were refused, want 1 to %d", refused, n, n-bodiesAtOnce)
	}
	eventually(t, "the room is there again", func() bool { return s.bodies.left.Load() == bodiesAtOnce*o.MaxBody })
	wantAnswer(t, h.URL, strings.Replace(capital, `"a"`, `"tiny"`, 1), paris)
}

// TestFaultDeepJSON: nesting costs no stack, wherever it stands.
func TestFaultDeepJSON(t *testing.T) {
	_, h := newTestServer(t, testOptions(t))
	const depth = 200_000
	open, objects := strings.Repeat("[", depth), strings.Repeat(`{"a":`, depth)
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/api/chat", "/api/generate", "/api/create", "/v1/messages", "/v1/messages/count_tokens"} {
		for name, body := range map[string]string{
			"arrays":         open,
			"objects":        objects,
			"whole":          open + strings.Repeat("]", depth),
			"unknown field":  `{"model":"tiny","x":` + open + strings.Repeat("]", depth) + `}`,
			"tools":          `{"model":"tiny","tools":` + objects + "1" + strings.Repeat("}", depth) + `}`,
			"deep in schema": `{"model":"tiny","format":` + objects + "1" + strings.Repeat("}", depth) + `}`,
		} {
			if status, data := ask(t, h, path, body); status != http.StatusBadRequest {
				t.Errorf("%s, %s: status %d: %.200s", path, name, status, data)
			}
		}
	}
}

// hugePNG is a picture of one colour: a few kilobytes that would become 4*w*h bytes.
func hugePNG(t *testing.T, w, h uint32, rows int) []byte {
	t.Helper()
	var pixels bytes.Buffer
	z := zlib.NewWriter(&pixels)
	row := make([]byte, 1+3*int(min(w, 1<<16)))
	for range rows {
		if _, err := z.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	out := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(typ string, data []byte) {
		body := append([]byte(typ), data...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
		out = append(out, body...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	}
	chunk("IHDR", append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h), 8, 2, 0, 0, 0))
	chunk("IDAT", pixels.Bytes())
	chunk("IEND", nil)
	return out
}

// TestFaultPictureBomb: what a picture says of its size is believed before any
// memory is taken for it.
func TestFaultPictureBomb(t *testing.T) {
	h := sharedServer(t)
	for _, tt := range []struct {
		name string
		data []byte
	}{
		{"all of it is there", hugePNG(t, 30_000, 30_000, 3_000)},
		{"nothing is there", hugePNG(t, 1<<31-1, 1<<31-1, 0)},
		{"wide", hugePNG(t, 1<<31-1, 1, 1)},
		{"high", hugePNG(t, 1, 1<<31-1, 1)},
	} {
		image := base64.StdEncoding.EncodeToString(tt.data)
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"tiny","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]}]}`,
			"/api/chat":            `{"model":"tiny","messages":[{"role":"user","content":"?","images":["` + image + `"]}]}`,
			"/v1/messages":         `{"model":"tiny","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}]}`,
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status, data := ask(t, h, path, body)
			runtime.ReadMemStats(&after)
			if status != http.StatusBadRequest {
				t.Errorf("%s, %s: status %d: %.300s", tt.name, path, status, data)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
				t.Errorf("%s, %s: %d bytes were allocated for a request of %d", tt.name, path, n, len(body))
			}
		}
	}
}

// TestFaultMalformed: what is no request is answered by 400 or cut off, and nobody
// else notices.
func TestFaultMalformed(t *testing.T) {
	h := sharedServer(t)
	for name, text := range map[string]string{
		"noise":               "\x00\x01\x02\r\n\r\n",
		"TLS":                 "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"no version":          "GET /\r\n\r\n",
		"two lengths":         "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"negative length":     "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: -2\r\n\r\n{}",
		"bad chunk":           "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
		"length and chunks":   "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: gzip\r\n\r\n{}",
		"no host":             "GET /health HTTP/1.1\r\n\r\n",
		"line feed in header": "GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
		"bad path":            "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"huge header":         "GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", h.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, text) }() // the server may cut it
		if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 12)
		if _, err := io.ReadFull(conn, line); err == nil && !strings.HasPrefix(string(line), "HTTP/1.") || err == nil && line[9] != '4' && line[9] != '5' {
			t.Errorf("%s: answered %q", name, line)
		} else if ne, ok := err.(net.Error); ok && ne.Timeout() && name != "TLS" {
			t.Errorf("%s: neither answered nor cut off", name)
		}
		conn.Close()
	}
	wantAnswer(t, h.URL, strings.Replace(capital, `"a"`, `"tiny"`, 1), paris)
}

// TestFaultPanic: a fault of this program ends one request, with an error while
// that is possible, else with a connection that is cut off.
func TestFaultPanic(t *testing.T) {
	s, h := newTestServer(t, testOptions(t))
	s.register([]route{
		{method: http.MethodGet, path: "/begun", handle: func(w http.ResponseWriter, _ *http.Request) error {
			if err := newStream(w, typeSSE).data("piece"); err != nil {
				return err
			}
			panic("late")
		}},
		{method: http.MethodGet, path: "/emit", handle: func(w http.ResponseWriter, r *http.Request) error {
			t := &turn{Model: "tiny", Raw: true, Prompt: "The happy", MaxTokens: 3}
			_, err := s.generate(r.Context(), t, func(event) error { panic("in an answer") })
			return err
		}},
	})
	resp, err := http.Get(h.URL + "/begun")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil {
		t.Errorf("an answer that was cut off looks whole: %q", data)
	}
	if resp, err = http.Get(h.URL + "/emit"); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("status %d", resp.StatusCode)
	}
	eventually(t, "its sequence is free", func() bool { a, w := s.active(); return a+w+s.busy() == 0 })
	wantAnswer(t, h.URL, strings.Replace(capital, `"a"`, `"tiny"`, 1), paris)
}
