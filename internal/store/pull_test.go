package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestPullJournalLeft begins a file beside the journal of another one, as when a
// process is killed between the name of a blob and the end of its journal, and the
// next one before it has fetched anything.
func TestPullJournalLeft(t *testing.T) {
	const model = "m-Q4_K_M.gguf"
	h := newFakeHub(t, repository(t))
	s := h.store(t)
	w := wanted{path: model, size: int64(len(h.files[model])), digest: "sha256:" + hexDigest(h.files[model])}
	path := s.partialPath(w)
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	left := newJournal(w.size, s.hub.partSize)
	for i := range left.Done {
		left.Done[i] = left.length(i)
	}
	data, err := json.Marshal(left)
	check(t, err)
	check(t, os.WriteFile(journalPath(path), data, 0o600))
	partial, busy, err := claimPartial(path)
	check(t, err)
	if busy {
		t.Fatal("the partial file is taken")
	}
	d := &download{hub: &s.hub, file: w, partial: partial, journal: journalPath(path)}
	check(t, d.open())
	check(t, partial.Close())
	m, err := s.Pull(t.Context(), "hf.co/org/repo", nil)
	check(t, err)
	wantFile(t, m.Model, h.files[model])
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
