package store

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

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
		{name: "500 for the first request of each part", set: func(h *fakeHub) {
			var seen sync.Map
			h.data = func(w http.ResponseWriter, r *http.Request, path string) bool {
				if _, again := seen.LoadOrStore(path+r.Header.Get("Range"), true); again {
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
		}, want: model + ": the file changes on the server while it is fetched"},
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
