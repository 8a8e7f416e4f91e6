package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inkling-go/inkling/convert"
	_ "github.com/inkling-go/inkling/convert/inkling"
	_ "github.com/inkling-go/inkling/convert/kimik25"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/testutil"
	"github.com/inkling-go/inkling/internal/tinymodel"
	_ "github.com/inkling-go/inkling/models/inkling"
	_ "github.com/inkling-go/inkling/models/kimik25"
)

func TestMain(m *testing.M) { os.Exit(tinymodel.Main(closing{m})) }

// closing are tests behind which the shared server is closed.
type closing struct{ m *testing.M }

func (c closing) Run() int {
	defer func() {
		if shared.s != nil {
			shared.s.Close()
			shared.h.Close()
		}
	}()
	return c.m.Run()
}

// tinyFile is the trained checkpoint's text file; the projector lies beside it.
func tinyFile(t testing.TB) string {
	t.Helper()
	return tinymodel.Inkling.Files(t, convert.OutF32).Model
}

// kimiFile is the same of Kimi's.
func kimiFile(t testing.TB) string {
	t.Helper()
	return tinymodel.Kimi.Files(t, convert.OutF32).Model
}

// tinyModel is the trained model under the name tiny.
func tinyModel(t testing.TB) *Model {
	t.Helper()
	m := fileModel(t, tinyFile(t))
	m.Name = "tiny"
	return m
}

// fileModel is the model of a converted file.
func fileModel(t testing.TB, path string) *Model {
	t.Helper()
	m, err := FileModel(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// f32KV keeps keys and values exact.
var f32KV, _ = engine.ParseKV("f32")

// testOptions serve the trained model with one thread.
func testOptions(t testing.TB) Options {
	return Options{
		Models: []*Model{tinyModel(t)}, KeepAlive: Forever, Version: "test",
		Engine: engine.Options{Threads: 1, Context: 2048, KV: f32KV, Parallel: 2},
		Log:    slog.New(slog.DiscardHandler),
	}
}

// newTestServer serves until the test ends.
func newTestServer(t testing.TB, o Options) (*Server, *httptest.Server) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		h.Close()
	})
	return s, h
}

// shared is a server that tests use which change nothing about it.
var shared struct {
	once sync.Once
	h    *httptest.Server
	s    *Server
}

func sharedServer(t testing.TB) *httptest.Server {
	t.Helper()
	o := testOptions(t)
	o.Media.FilesDir = testutil.Testdata(t, "inkling-tiny-eval")
	shared.once.Do(func() {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		shared.s, shared.h = s, httptest.NewServer(s)
	})
	return shared.h
}

// ask sends a JSON body and returns status and body of the answer.
func ask(t testing.TB, h *httptest.Server, path, body string) (int, []byte) {
	t.Helper()
	resp, err := h.Client().Post(h.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return whole(t, resp)
}

// whole reads an answer to its end.
func whole(t testing.TB, resp *http.Response) (int, []byte) {
	t.Helper()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, data
}

// askOK is ask for an answer with status 200, which it reads into dst.
func askOK(t testing.TB, h *httptest.Server, path, body string, dst any) {
	t.Helper()
	status, data := ask(t, h, path, body)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, data)
	}
	if err := json.Unmarshal(data, dst); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
}

// events sends a JSON body and returns the data of the answer's events.
func events(t testing.TB, h *httptest.Server, path, body string) []string {
	t.Helper()
	status, data := ask(t, h, path, body)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, data)
	}
	var all []string
	for _, e := range bytes.Split(bytes.TrimSuffix(data, []byte("\n\n")), []byte("\n\n")) {
		rest, ok := bytes.CutPrefix(e, []byte("data: "))
		if !ok {
			t.Fatalf("event %q", e)
		}
		all = append(all, string(rest))
	}
	return all
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 20 s: " + what)
		}
	}
}

func quote(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return string(data)
}
