package store

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inkling-go/inkling/internal/gguf"
)

const fakeToken = "hf_secret"

// fakeHub is a hub with one repository, org/repo, whose large files lie on
// another host, as the hub's do. A test changes what the handlers do.
type fakeHub struct {
	*httptest.Server
	cdn *httptest.Server

	files    map[string][]byte
	small    map[string]bool // files without an LFS entry
	pageSize int             // entries of a page of the list

	list    func(w http.ResponseWriter, r *http.Request) (handled bool)
	resolve func(w http.ResponseWriter, r *http.Request, path string) (handled bool)
	data    func(w http.ResponseWriter, r *http.Request, path string) (handled bool)

	mu       sync.Mutex
	requests []string // of the CDN: path and range
	leaked   bool     // the CDN saw a token
}

func newFakeHub(t *testing.T, files map[string][]byte) *fakeHub {
	h := &fakeHub{files: files, small: map[string]bool{}, pageSize: 1000}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serveHub))
	h.cdn = httptest.NewServer(http.HandlerFunc(h.serveData))
	t.Cleanup(h.Close)
	t.Cleanup(h.cdn.Close)
	return h
}

func (h *fakeHub) serveHub(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+fakeToken {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/api/models/org/repo/tree/main" {
		if h.list == nil || !h.list(w, r) {
			h.serveList(w, r)
		}
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/org/repo/resolve/main/")
	if _, there := h.files[path]; !ok || !there {
		http.NotFound(w, r)
		return
	}
	if h.resolve == nil || !h.resolve(w, r, path) {
		http.Redirect(w, r, h.cdn.URL+"/"+path+"?signed=1", http.StatusFound)
	}
}

func (h *fakeHub) serveList(w http.ResponseWriter, r *http.Request) {
	var all []map[string]any
	for path, data := range h.files {
		entry := map[string]any{"type": "file", "path": path, "size": len(data), "oid": gitOID(data)}
		if !h.small[path] {
			entry["oid"] = strings.Repeat("0", 40)
			entry["lfs"] = map[string]any{"oid": hexDigest(data), "size": len(data), "pointerSize": 135}
		}
		all = append(all, entry)
	}
	slices.SortFunc(all, func(a, b map[string]any) int { return strings.Compare(a["path"].(string), b["path"].(string)) })
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	to := min(from+h.pageSize, len(all))
	if to < len(all) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=%d>; rel="next"`, h.URL, r.URL.Path, to))
	}
	_ = json.NewEncoder(w).Encode(all[from:to])
}

func (h *fakeHub) serveData(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	h.mu.Lock()
	h.requests = append(h.requests, path+" "+r.Header.Get("Range"))
	h.leaked = h.leaked || r.Header.Get("Authorization") != ""
	h.mu.Unlock()
	if h.data == nil || !h.data(w, r, path) {
		serveRange(w, r, h.files[path])
	}
}

// asked is what the CDN was asked for, and whether it saw a token.
func (h *fakeHub) asked() (requests []string, leaked bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests), h.leaked
}

// serveRange serves content as the hub's CDN does.
func serveRange(w http.ResponseWriter, r *http.Request, data []byte) {
	w.Header().Set("ETag", `"`+hexDigest(data)+`"`)
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(data)))
}

// cutAfter serves n bytes of what was asked for and breaks the connection.
func cutAfter(w http.ResponseWriter, r *http.Request, data []byte, n int) {
	rec := httptest.NewRecorder()
	serveRange(rec, r, data)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()[:min(n, rec.Body.Len())])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// store returns an empty store that pulls from the hub, without pauses.
func (h *fakeHub) store(t *testing.T) *Store {
	t.Helper()
	t.Setenv("HF_ENDPOINT", h.URL+"/")
	t.Setenv("HF_TOKEN", fakeToken)
	s := openStore(t)
	s.hub.partSize = 64 << 10
	s.hub.connections = 4
	s.hub.retry.first, s.hub.retry.last = time.Microsecond, time.Microsecond
	s.hub.retry.attempts = 4
	return s
}

func openStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func gitOID(data []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(data))
	_, _ = h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// makeGGUF makes a file with one tensor of n values, so that it has about 4n
// bytes, that differ by seed. Keys are pairs of name and value.
func makeGGUF(t *testing.T, arch string, n, seed int, keys ...any) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	w, err := gguf.Create(path)
	check(t, err)
	check(t, w.Set("general.architecture", arch))
	for i := 0; i < len(keys); i += 2 {
		check(t, w.Set(keys[i].(string), keys[i+1]))
	}
	name := fmt.Sprintf("t%d", seed)
	check(t, w.AddTensor(name, gguf.F32, []int64{int64(n)}))
	check(t, w.WriteTensor(name, func(w io.Writer) error {
		row := make([]byte, 4*n)
		for i := range row {
			row[i] = byte(i*seed>>3 + i>>8)
		}
		_, err := w.Write(row)
		return err
	}))
	check(t, w.Commit())
	data, err := os.ReadFile(path)
	check(t, err)
	return data
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantFile checks the content behind a path of a model.
func wantFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	check(t, err)
	if string(got) != string(want) {
		t.Errorf("%s: %d bytes that are not the %d wanted", path, len(got), len(want))
	}
}
