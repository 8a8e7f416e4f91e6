package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/tinymodel"
)

// capital asks the model a for what the trained checkpoint knows.
const capital = `{"model":"a","temperature":0,"max_tokens":60,"reasoning_effort":"none","messages":[{"role":"user","content":"What is the capital of France?"}]}`

const paris = "The capital of France is Paris."

// wantParis asks for the capital, and fails the test if the answer is another.
func wantParis(t *testing.T, url string) {
	t.Helper()
	wantAnswer(t, url, capital, paris)
}

// copyWithProjector is copyModel with a projector beside it.
func copyWithProjector(t *testing.T) *Model {
	t.Helper()
	m := copyModel(t, "a")
	data, err := os.ReadFile(tinymodel.Inkling.Files(t, "f32").MMProj)
	if err != nil {
		t.Fatal(err)
	}
	m.MMProj = filepath.Join(filepath.Dir(m.Path), "mmproj-a.gguf")
	if err := os.WriteFile(m.MMProj, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFaultFiles: what happens to the files of a loaded model is seen before the
// next request touches them, which fails, and unloads the model. A file that is
// well again is loaded again.
func TestFaultFiles(t *testing.T) {
	m := copyWithProjector(t)
	sound := map[string][]byte{}
	for _, path := range []string{m.Path, m.MMProj} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sound[path] = data
	}
	o := testOptions(t)
	o.Models = []*Model{m}
	s, h := newTestServer(t, o)
	write := func(path string, data []byte) error { return os.WriteFile(path, data, 0o666) }
	rename := func(path string, data []byte) error {
		if err := os.WriteFile(path+".new", data, 0o666); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
	for _, tt := range []struct {
		name   string
		harm   func() error
		status int
	}{
		{"the text file is cut", func() error { return os.Truncate(m.Path, 100_000) }, 503},
		{"the text file is empty", func() error { return os.Truncate(m.Path, 0) }, 503},
		{"the text file is removed", func() error { return os.Remove(m.Path) }, 503},
		{"a folder is in its place", func() error { return firstOf(os.Remove(m.Path), os.Mkdir(m.Path, 0o777)) }, 503},
		{"another file is in its place", func() error { return rename(m.Path, []byte("GGUF")) }, 503},
		{"the same content in another file", func() error { return rename(m.Path, sound[m.Path]) }, 200},
		{"the same content is written over it", func() error { return write(m.Path, sound[m.Path]) }, 200},
		{"the projector is cut", func() error { return os.Truncate(m.MMProj, 50_000) }, 503},
		{"the projector is removed", func() error { return os.Remove(m.MMProj) }, 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantParis(t, h.URL)
			if err := tt.harm(); err != nil {
				t.Fatal(err)
			}
			status, data := ask(t, h, "/v1/chat/completions", capital)
			if status != tt.status {
				t.Errorf("status %d, want %d: %s", status, tt.status, data)
			}
			if tt.status != 200 {
				if _, typ, _, _ := errorOf(t, data); typ != "server_error" || !strings.Contains(string(data), "loading a: ") {
					t.Errorf("error %s", data)
				}
				if names := s.pool.names(); len(names) != 0 {
					t.Errorf("loaded: %v", names)
				}
			}
			for path, data := range sound {
				if err := firstOf(os.RemoveAll(path), write(path, data)); err != nil {
					t.Fatal(err)
				}
			}
			wantParis(t, h.URL)
		})
	}
}

// firstOf is the first of two errors that is one.
func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// TestFaultReplacedUnderStream: an answer that has begun goes on with the file that
// it began with, while others have the new one.
func TestFaultReplacedUnderStream(t *testing.T) {
	o := testOptions(t)
	m := copyModel(t, "a")
	o.Models, o.MaxLoaded = []*Model{m}, 2
	s, h := newTestServer(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begin(t, ctx, h.URL, strings.Replace(endless, `"tiny"`, `"a"`, 1))
	data, err := os.ReadFile(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.Path+".new", data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.Path+".new", m.Path); err != nil {
		t.Fatal(err)
	}
	wantParis(t, h.URL)
	s.pool.mu.Lock()
	all := len(s.pool.all)
	s.pool.mu.Unlock()
	if all != 2 {
		t.Errorf("%d models in memory, want the old one at work and the new one", all)
	}
	cancel()
	eventually(t, "the old one is gone", func() bool {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		return len(s.pool.all) == 1
	})
	wantParis(t, h.URL)
}

// TestFaultCutUnderStream: with --no-mmap an answer goes on that was begun before
// its files were cut in place. Mapped weights would end the process here.
func TestFaultCutUnderStream(t *testing.T) {
	o := testOptions(t)
	m := copyWithProjector(t)
	o.Models, o.Engine.NoMmap = []*Model{m}, true
	_, h := newTestServer(t, o)
	resp := begin(t, context.Background(), h.URL, strings.Replace(endless, `"tiny"`, `"a"`, 1))
	for _, path := range []string{m.Path, m.MMProj} {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(data), "data: [DONE]\n\n") || strings.Contains(string(data), `"error"`) {
		t.Errorf("error %v, the stream ends with %q", err, data[max(0, len(data)-300):])
	}
	if status, data := ask(t, h, "/v1/chat/completions", capital); status != http.StatusServiceUnavailable {
		t.Errorf("status %d: %s", status, data)
	}
}

// TestFaultOutOfMemory: a device without room for a model is said to be so, in the
// words of each API, with a time to come back, and the server goes on.
func TestFaultOutOfMemory(t *testing.T) {
	o := testOptions(t)
	o.Models = []*Model{copyModel(t, "a")}
	s, h := newTestServer(t, o)
	open := s.pool.open
	for path, body := range map[string]string{
		"/v1/chat/completions": capital,
		"/v1/responses":        `{"model":"a","input":"Hi"}`,
		"/v1/embeddings":       `{"model":"a","input":"Hi"}`,
		"/api/chat":            `{"model":"a","messages":[{"role":"user","content":"Hi"}]}`,
		"/api/generate":        `{"model":"a","prompt":"Hi"}`,
		"/v1/messages":         `{"model":"a","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`,
	} {
		s.pool.open = func(context.Context, engine.Options) (*engine.Engine, error) {
			return nil, errOutOfMemory
		}
		resp, err := http.Post(h.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		err = json.NewDecoder(resp.Body).Decode(&got)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(quote(got), "out of memory") {
			t.Errorf("%s: status %d, Retry-After %q, error %v: %s", path, resp.StatusCode, resp.Header.Get("Retry-After"), err, quote(got))
		}
	}
	s.pool.open = open
	wantParis(t, h.URL)
	if e := asError(fmt.Errorf("computing a step: %w", errOutOfMemory)); e.Status != http.StatusServiceUnavailable || e.RetryAfter == 0 {
		t.Errorf("a step without room has status %d, Retry-After %s", e.Status, e.RetryAfter)
	}
}

// TestFaultModelSwap: two models that take turns in the room for one answer all
// their clients.
func TestFaultModelSwap(t *testing.T) {
	o := testOptions(t)
	o.Models = []*Model{copyModel(t, "a"), copyModel(t, "b")}
	s, h := newTestServer(t, o)
	most := 0
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				s.pool.mu.Lock()
				most = max(most, len(s.pool.all))
				s.pool.mu.Unlock()
			}
		}
	}()
	clients(t, 6, func(i int) {
		for j := range 4 {
			body := capital
			if (i+j)%2 == 1 {
				body = strings.Replace(body, `"a"`, `"b"`, 1)
			}
			wantAnswer(t, h.URL, body, paris)
		}
	})
	close(stop)
	<-watched
	if most != 1 {
		t.Errorf("%d models in memory at once", most)
	}
}

// TestFaultUnloadRaces: requests, keep-alives that end at once, and clients that
// unload the model do not get in each other's way.
func TestFaultUnloadRaces(t *testing.T) {
	o := testOptions(t)
	o.Models, o.KeepAlive = []*Model{copyModel(t, "a")}, time.Millisecond
	s, h := newTestServer(t, o)
	clients(t, 6, func(i int) {
		for j := range 6 {
			if (i+j)%3 == 0 {
				status, data := ask(t, h, "/api/generate", `{"model":"a","keep_alive":0,"stream":false}`)
				if status != http.StatusOK || !strings.Contains(string(data), `"unload"`) {
					t.Errorf("unload: status %d: %s", status, data)
				}
				continue
			}
			wantParis(t, h.URL)
			time.Sleep(time.Duration(j) * time.Millisecond)
		}
	})
	eventually(t, "all are gone", func() bool {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		return len(s.pool.all) == 0
	})
}

// TestFaultSharedStore: two servers on one store see each other's changes and lose
// nothing.
func TestFaultSharedStore(t *testing.T) {
	dir := t.TempDir()
	var servers []string
	for range 2 {
		o := testOptions(t)
		o.Models, o.Store = nil, openStore(t, dir)
		_, h := newTestServer(t, o)
		servers = append(servers, h.URL)
	}
	digest := putModel(t, servers[0], servers[1])
	names := []string{"one", "two", "three", "four"}
	clients(t, len(names), func(i int) {
		name := names[i]
		for range 3 {
			post(t, servers[i%2]+"/api/create", `{"model":"`+name+`","files":{"m.gguf":"`+digest+`"},"stream":false}`, 200)
			post(t, servers[(i+1)%2]+"/api/copy", `{"source":"`+name+`","destination":"`+name+`-copy"}`, 200)
			remove(t, servers[i%2], name)
		}
	})
	for _, url := range servers {
		var tags struct{ Models []struct{ Name string } }
		getJSON(t, url+"/api/tags", &tags)
		var got []string
		for _, m := range tags.Models {
			got = append(got, m.Name)
		}
		slices.Sort(got)
		if want := []string{"four-copy:latest", "one-copy:latest", "three-copy:latest", "two-copy:latest"}; !slices.Equal(got, want) {
			t.Errorf("models %v, want %v", got, want)
		}
		wantAnswer(t, url, strings.Replace(capital, `"a"`, `"one-copy"`, 1), paris)
	}
}
