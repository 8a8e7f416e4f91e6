package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// repository is what the hub's has: 320 KB in the larger model, so five parts.
func repository(t *testing.T) map[string][]byte {
	return map[string][]byte{
		"README.md":                             []byte("# repo"),
		"m-Q8_0.gguf":                           makeGGUF(t, "inkling", 1000, 8),
		"m-Q4_K_M.gguf":                         makeGGUF(t, "inkling", 80000, 4, "general.file_type", uint32(15), "inkling.context_length", uint32(512)),
		"mmproj-m-F16.gguf":                     makeGGUF(t, "clip", 20000, 1, "clip.has_vision_encoder", true),
		"mmproj-m-F32.gguf":                     makeGGUF(t, "clip", 20000, 2),
		"mtp-m-Q4_K_M.gguf":                     makeGGUF(t, "inkling", 500, 3),
		"big dir/m-BF16-00001-of-00002.gguf":    makeGGUF(t, "inkling", 600, 5, "split.no", uint16(0), "split.count", uint16(2), "split.tensors.count", int32(2)),
		"big dir/m-BF16-00002-of-00002.gguf":    makeGGUF(t, "inkling", 700, 6, "split.no", uint16(1), "split.count", uint16(2), "split.tensors.count", int32(2)),
		"original/model-00001-of-1.safetensors": []byte("x"),
	}
}

func TestPull(t *testing.T) {
	h := newFakeHub(t, repository(t))
	h.pageSize = 2
	h.small["mtp-m-Q4_K_M.gguf"] = true
	s := h.store(t)
	var last Progress
	m, err := s.Pull(t.Context(), "https://huggingface.co/org/repo", func(p Progress) { last = p })
	check(t, err)
	if m.Name != "hf.co/org/repo:latest" || last.Status != "writing manifest" {
		t.Errorf("name %s, last status %q", m.Name, last.Status)
	}
	wantFile(t, m.Model, h.files["m-Q4_K_M.gguf"])
	wantFile(t, m.MMProj, h.files["mmproj-m-F16.gguf"])
	wantFile(t, m.MTP, h.files["mtp-m-Q4_K_M.gguf"])
	if got := filepath.Base(m.Model); got != "m-Q4_K_M.gguf" || filepath.Dir(m.MMProj) != filepath.Dir(m.Model) {
		t.Errorf("model at %s, projector at %s", m.Model, m.MMProj)
	}
	want := Details{Architecture: "inkling", Parameters: 80000, Quantization: "Q4_K_M", Context: 512, Vision: true}
	if diff := cmp.Diff(want, m.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	requests, leaked := h.asked()
	if leaked {
		t.Error("another host saw the token")
	}
	// Five parts, two and one.
	if len(requests) != 8 || !slices.Contains(requests, "m-Q4_K_M.gguf bytes=65536-131071") {
		t.Errorf("requests %q", requests)
	}
	left, err := filepath.Glob(filepath.Join(s.Dir(), "blobs", "*.*"))
	check(t, err)
	if len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}

	// Again, and another type, which shares the projector.
	_, err = s.Pull(t.Context(), "hf.co/org/repo", nil)
	check(t, err)
	m, err = s.Pull(t.Context(), "hf.co/org/repo:bf16", nil)
	check(t, err)
	if got := filepath.Base(m.Model); got != "m-BF16-00001-of-00002.gguf" {
		t.Errorf("model at %s", m.Model)
	}
	wantFile(t, strings.Replace(m.Model, "00001-of", "00002-of", 1), h.files["big dir/m-BF16-00002-of-00002.gguf"])
	// The MTP file is known by its sha1 only, so it is fetched each time.
	if more, _ := h.asked(); len(more) != 8+1+3 {
		t.Errorf("%d requests more, want the MTP file twice and two parts", len(more)-8)
	}
}

// TestPullFaults checks that a pull survives what servers do, or says what they
// did.
func TestPullFaults(t *testing.T) {
	const model = "m-Q4_K_M.gguf"
	files := repository(t)
	first := func() func() bool { // true once
		var n atomic.Int32
		return func() bool { return n.Add(1) == 1 }
	}
	for _, tt := range []struct {
		name string
		set  func(h *fakeHub)
		want string // "": the pull succeeds
		then func(t *testing.T, h *fakeHub, s *Store)
	}{
		{name: "cut connections", set: func(h *fakeHub) {
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				cutAfter(w, r, h.files[path], 40000)
				return true
			}
		}, then: func(t *testing.T, h *fakeHub, _ *Store) {
			requests, _ := h.asked()
			if !slices.Contains(requests, model+" bytes=40000-65535") {
				t.Errorf("no request goes on at the cut: %q", requests)
			}
		}},
		{name: "cut without a byte, for ever", set: func(h *fakeHub) {
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool { panic(http.ErrAbortHandler) }
		}, want: "EOF (4 attempts)"},
		{name: "a stalled connection", set: func(h *fakeHub) {
			once := first()
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if path != model || !once() {
					return false
				}
				<-r.Context().Done()
				return true
			}
		}},
		{name: "wrong hash", set: func(h *fakeHub) {
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if path == model {
					serveRange(w, r, append(slices.Clone(h.files[path][:len(h.files[path])-1]), 'x'))
				}
				return path == model
			}
		}, want: "the content has another hash: sha256:", then: func(t *testing.T, _ *fakeHub, s *Store) {
			left, _ := filepath.Glob(filepath.Join(s.Dir(), "blobs", "*"+hexDigest(files[model])+"*"))
			if len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
		}},
		{name: "wrong hash of a small file", set: func(h *fakeHub) {
			h.small[model] = true
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				serveRange(w, r, make([]byte, len(h.files[path])))
				return true
			}
		}, want: "another hash: sha"},
		{name: "429 with a time", set: func(h *fakeHub) {
			once, listed := first(), first()
			h.list = func(w http.ResponseWriter, r *http.Request) bool {
				if !listed() {
					return false
				}
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}
			h.resolve = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if !once() {
					return false
				}
				w.Header().Set("Retry-After", time.Now().UTC().Format(http.TimeFormat))
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}
		}},
		{name: "429 for too long", set: func(h *fakeHub) {
			h.resolve = func(w http.ResponseWriter, r *http.Request, path string) bool {
				w.Header().Set("Retry-After", "86400")
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}
		}, want: "429 Too Many Requests (the server asks to wait 24h0m0s)"},
		{name: "500 now and then", set: func(h *fakeHub) {
			var n atomic.Int32
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if n.Add(1)%2 == 0 {
					return false
				}
				w.WriteHeader(http.StatusInternalServerError)
				return true
			}
		}},
		{name: "500 for ever", set: func(h *fakeHub) {
			h.list = func(w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(http.StatusInternalServerError)
				return true
			}
		}, want: "hf.co/org/repo: 500 Internal Server Error (4 attempts)"},
		{name: "no ranges", set: func(h *fakeHub) {
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				_, _ = w.Write(h.files[path])
				return true
			}
		}},
		{name: "no ranges, cut once", set: func(h *fakeHub) {
			var n atomic.Int32
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if path == model && n.Add(1) == 2 {
					_, _ = w.Write(h.files[path][:100000])
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
				_, _ = w.Write(h.files[path])
				return true
			}
		}},
		{name: "no ranges, wrong length", set: func(h *fakeHub) {
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				_, _ = w.Write(h.files[path][:1000])
				return true
			}
		}, want: "the server's file has 1000 bytes, want "},
		{name: "ranges of another length", set: func(h *fakeHub) {
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				serveRange(w, r, append(slices.Clone(h.files[path]), 1, 2, 3))
				return true
			}
		}, want: " bytes, want "},
		{name: "a length that promises more", set: func(h *fakeHub) {
			once := first()
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if path != model || !once() {
					return false
				}
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-65535/%d", len(h.files[path])))
				w.Header().Set("Content-Length", "65536")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(h.files[path][:1000])
				return true
			}
		}},
		{name: "another range", set: func(h *fakeHub) {
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				r.Header.Set("Range", "bytes=10-20")
				return false
			}
		}, want: `the server sends the range "bytes 10-20/`},
		{name: "the file changes once", set: func(h *fakeHub) {
			var n atomic.Int32
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if path != model || n.Add(1) != 1 {
					return false
				}
				r.Header.Del("If-Range")
				old := slices.Clone(h.files[path])
				old[5000]++
				serveRange(w, r, old)
				return true
			}
		}},
		{name: "the file changes all the time", set: func(h *fakeHub) {
			var n atomic.Int32
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if path != model {
					return false
				}
				r.Header.Del("If-Range")
				data := slices.Clone(h.files[path])
				data[5000] = byte(n.Add(1))
				serveRange(w, r, data)
				return true
			}
		}, want: "the file changes on the server while it is fetched"},
		{name: "gated files", set: func(h *fakeHub) {
			h.resolve = func(w http.ResponseWriter, r *http.Request, path string) bool {
				w.WriteHeader(http.StatusForbidden)
				return true
			}
		}, want: "no access (403 Forbidden) with the token that is set"},
		{name: "the list is no JSON", set: func(h *fakeHub) {
			h.list = func(w http.ResponseWriter, r *http.Request) bool {
				_, _ = w.Write([]byte("<html>"))
				return true
			}
		}, want: "the list of files from http://"},
		{name: "the list goes on elsewhere", set: func(h *fakeHub) {
			h.list = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Link", `<http://evil.example/x>; rel="next"`)
				_, _ = w.Write([]byte("[]"))
				return true
			}
		}, want: "the list of files goes on at another host, evil.example"},
		{name: "the list has no end", set: func(h *fakeHub) {
			h.list = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Link", `</api/models/org/repo/tree/main>; rel="next"`)
				_, _ = w.Write([]byte("[]"))
				return true
			}
		}, want: "more than 1000 pages"},
		{name: "a hash that is none", set: func(h *fakeHub) {
			h.list = func(w http.ResponseWriter, r *http.Request) bool {
				_, _ = w.Write([]byte(`[{"type":"file","path":"m.gguf","size":3,"oid":"","lfs":{"oid":"../../x","size":3}}]`))
				return true
			}
		}, want: `"../../x" as the sha256 of m.gguf`},
		{name: "an impossible size", set: func(h *fakeHub) {
			h.list = func(w http.ResponseWriter, r *http.Request) bool {
				fmt.Fprintf(w, `[{"type":"file","path":"m.gguf","size":-3,"oid":%q}]`, strings.Repeat("0", 40))
				return true
			}
		}, want: "-3 as the size of m.gguf"},
		{name: "not GGUF", set: func(h *fakeHub) {
			h.files[model] = []byte("not what its name says")
		}, want: "m-Q4_K_M.gguf: gguf: "},
		{name: "a projector under the name of a model", set: func(h *fakeHub) {
			h.files[model] = h.files["mmproj-m-F16.gguf"]
		}, want: "m-Q4_K_M.gguf: it is a projector, want a model"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newFakeHub(t, maps.Clone(files))
			s := h.store(t)
			s.hub.retry.stall = 500 * time.Millisecond
			tt.set(h)
			m, err := s.Pull(t.Context(), "hf.co/org/repo", nil)
			if tt.want == "" {
				check(t, err)
				wantFile(t, m.Model, h.files[model])
			} else if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if tt.then != nil {
				tt.then(t, h, s)
			}
			if _, leaked := h.asked(); leaked {
				t.Error("another host saw the token")
			}
			if tt.want != "" {
				if models, err := s.List(); err != nil || len(models) > 0 {
					t.Errorf("models after a failure: %v, %v", models, err)
				}
			}
		})
	}
}

func TestPullRefuses(t *testing.T) {
	files := repository(t)
	for _, tt := range []struct {
		name, model, token string
		files              map[string][]byte
		want               string
		is                 error
	}{
		{name: "another type", model: "hf.co/org/repo:Q3_K", want: "no GGUF file of type or name Q3_K; there is BF16, Q4_K_M, Q8_0"},
		{name: "no such repository", model: "hf.co/org/other", want: "hf.co/org/other: not found on http://"},
		{name: "not of the hub", model: "other", want: "only models of the hub can be pulled: hf.co/ORG/REPO[:QUANT]"},
		{name: "no token", model: "hf.co/org/repo", token: "-", want: "set HF_TOKEN", is: ErrNoAccess},
		{name: "a checkpoint", model: "hf.co/org/repo", files: map[string][]byte{"config.json": nil, "model.safetensors": nil}, want: "inkling-run import", is: ErrCheckpoint},
		{name: "nothing", model: "hf.co/org/repo", files: map[string][]byte{"README.md": nil}, want: "hf.co/org/repo: no GGUF file of a model"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newFakeHub(t, files)
			if tt.files != nil {
				h.files = tt.files
			}
			s := h.store(t)
			if tt.token != "" {
				t.Setenv("HF_TOKEN", "")
				t.Setenv("HF_HOME", t.TempDir())
				s.hub.token = hubToken()
				s.hub.client.Transport = s.hub.transport(http.DefaultTransport)
			}
			_, err := s.Pull(t.Context(), tt.model, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPullNeedsSpace(t *testing.T) {
	h := newFakeHub(t, repository(t))
	s := h.store(t)
	s.free = func(string) (int64, bool) { return 300_000, true }
	_, err := s.Pull(t.Context(), "hf.co/org/repo", nil)
	var space *SpaceError
	if !errors.As(err, &space) || space.Free != 300_000 {
		t.Fatalf("error %v, want a SpaceError", err)
	}
	var need int64
	for _, name := range []string{"m-Q4_K_M.gguf", "mmproj-m-F16.gguf", "mtp-m-Q4_K_M.gguf"} {
		need += int64(len(h.files[name]))
	}
	if space.Need != need {
		t.Errorf("%d bytes needed, want %d", space.Need, need)
	}
	if requests, _ := h.asked(); len(requests) > 0 {
		t.Errorf("requests %q", requests)
	}
}

// TestPullResumes cancels a pull, which leaves its files for the next one.
func TestPullResumes(t *testing.T) {
	h := newFakeHub(t, repository(t))
	s := h.store(t)
	s.hub.connections = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
		if path == "m-Q4_K_M.gguf" && strings.HasPrefix(r.Header.Get("Range"), "bytes=131072-") {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 131072-196607/%d", len(h.files[path])))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(h.files[path][131072:][:1000])
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond) // for the bytes to arrive; if they do not, less is resumed
			cancel()
			<-r.Context().Done()
			return true
		}
		return false
	}
	if _, err := s.Pull(ctx, "hf.co/org/repo", nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the context", err)
	}
	removed, err := s.GC(t.Context(), GCOptions{Partial: time.Hour})
	check(t, err)
	for _, r := range removed {
		if strings.HasSuffix(r.Path, partialSuffix) {
			t.Errorf("collected: %s", r.Path)
		}
	}
	before, _ := h.asked()
	h.data = nil
	m, err := s.Pull(t.Context(), "hf.co/org/repo", nil)
	check(t, err)
	wantFile(t, m.Model, h.files["m-Q4_K_M.gguf"])
	after, _ := h.asked()
	for _, r := range after[len(before):] {
		if r == "m-Q4_K_M.gguf bytes=0-65535" || r == "m-Q4_K_M.gguf bytes=65536-131071" {
			t.Errorf("fetched again: %s", r)
		}
	}
}

// TestPullTwice pulls the same model by two stores on one folder, as two
// processes do.
func TestPullTwice(t *testing.T) {
	h := newFakeHub(t, repository(t))
	a := h.store(t)
	b, err := Open(a.Dir())
	check(t, err)
	b.hub = a.hub
	h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
		time.Sleep(5 * time.Millisecond) // so that they meet
		return false
	}
	done := make(chan error, 2)
	for _, s := range []*Store{a, b} {
		go func() {
			_, err := s.Pull(t.Context(), "hf.co/org/repo", nil)
			done <- err
		}()
	}
	check(t, <-done)
	check(t, <-done)
	requests, _ := h.asked()
	slices.Sort(requests)
	if twice := len(requests) - len(slices.Compact(slices.Clone(requests))); twice > 0 {
		t.Errorf("%d ranges were fetched twice: %q", twice, requests)
	}
}

func TestHubToken(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CACHE_HOME", dir)
	want := func(token string) {
		t.Helper()
		if got := hubToken(); got != token {
			t.Errorf("token %q, want %q", got, token)
		}
	}
	want("")
	check(t, os.MkdirAll(filepath.Join(dir, "huggingface"), 0o700))
	check(t, os.WriteFile(filepath.Join(dir, "huggingface", "token"), []byte("stored\n"), 0o600))
	want("stored")
	t.Setenv("HF_TOKEN", "set")
	want("set")
}

func TestHubCheck(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"https://huggingface.co": true, "http://127.0.0.1:8080": true, "http://localhost": true,
		"http://mirror.example": false, "mirror.example": false, "ftp://mirror.example": false,
	} {
		h := hub{endpoint: endpoint, token: "x"}
		if err := h.check(); (err == nil) != ok {
			t.Errorf("%s: error %v", endpoint, err)
		}
	}
}
