package server

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inkling-go/inkling/internal/store"
)

// storeServer serves an empty store.
func storeServer(t *testing.T) (*Server, *httptest.Server) {
	t.Helper()
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(t)
	o.Models, o.Store = nil, st
	return newTestServer(t, o)
}

// do sends a request of any method and returns the status of its answer.
func do(t *testing.T, h *httptest.Server, method, path string, body *os.File, text string) int {
	t.Helper()
	req, err := http.NewRequest(method, h.URL+path, strings.NewReader(text))
	if body != nil {
		req, err = http.NewRequest(method, h.URL+path, body)
	}
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// putBlob uploads a file as Ollama's client does, and returns its digest.
func putBlob(t *testing.T, h *httptest.Server, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if status := do(t, h, http.MethodHead, "/api/blobs/"+digest, nil, ""); status != http.StatusNotFound {
		t.Errorf("before it is there: status %d", status)
	}
	for _, want := range []int{http.StatusCreated, http.StatusOK} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if status := do(t, h, http.MethodPost, "/api/blobs/"+digest, f, ""); status != want {
			t.Errorf("put: status %d, want %d", status, want)
		}
	}
	if status := do(t, h, http.MethodHead, "/api/blobs/"+digest, nil, ""); status != http.StatusOK {
		t.Errorf("after it is there: status %d", status)
	}
	return digest
}

// TestOllamaStore makes a model of files that are put, makes another one from it,
// asks it, copies it and deletes all.
func TestOllamaStore(t *testing.T) {
	s, h := storeServer(t)
	file := tinyModel(t)
	files := map[string]string{"tiny.gguf": putBlob(t, h, file.Path), "mmproj-tiny.gguf": putBlob(t, h, file.MMProj)}
	status, data := ask(t, h, "/api/create", `{"model":"base","files":`+quote(files)+`}`)
	if lines := strings.Split(strings.TrimSpace(string(data)), "\n"); status != 200 || lines[len(lines)-1] != `{"status":"success"}` {
		t.Fatalf("status %d: %s", status, data)
	}
	var done store.Progress
	askOK(t, h, "/api/create", `{"model":"brief","from":"base","system":"Answer briefly.","license":"MIT","parameters":{"temperature":0,"num_predict":60,"stop":["zebra"]},
		"messages":[{"role":"user","content":"My favourite food is cake."},{"role":"assistant","content":"I will remember that your favourite food is cake."}],"stream":false}`, &done)
	if done.Status != "success" {
		t.Errorf("created: %s", quote(done))
	}
	var l ollamaLine
	askOK(t, h, "/api/chat", `{"model":"brief","think":false,"stream":false,"messages":[{"role":"user","content":"What is my favourite food?"}]}`, &l)
	if l.Message.Content != "Your favourite food is cake." {
		t.Errorf("answered %q", l.Message.Content)
	}
	checkShown(t, h)
	if status := do(t, h, http.MethodPost, "/api/copy", nil, `{"source":"brief","destination":"you/other:1"}`); status != 200 {
		t.Errorf("copied with status %d", status)
	}
	tags := func() (names []string) {
		_, data := get(t, h, "/api/tags")
		for _, m := range unmarshal[struct {
			Models []struct {
				Name, Digest string
				Modified     time.Time `json:"modified_at"`
				Size         int64
				Details      ollamaDetails
			}
		}](t, string(data)).Models {
			names = append(names, m.Name)
			if m.Modified.IsZero() || m.Size == 0 || !strings.HasPrefix(m.Digest, "sha256:") || m.Details.Family != "inkling" || m.Details.QuantizationLevel != "F32" || m.Details.ParameterSize == "" {
				t.Errorf("model %s", quote(m))
			}
		}
		slices.Sort(names)
		return names
	}
	if got := tags(); !slices.Equal(got, []string{"base:latest", "brief:latest", "you/other:1"}) {
		t.Errorf("models %q", got)
	}
	for _, name := range []string{"base", "brief:latest", "you/other:1"} {
		if status := do(t, h, http.MethodDelete, "/api/delete", nil, `{"model":"`+name+`"}`); status != 200 {
			t.Errorf("%s deleted with status %d", name, status)
		}
	}
	if got := tags(); len(got) > 0 {
		t.Errorf("after deletion there are %q", got)
	}
	eventually(t, "the deleted model is out of memory", func() bool { return len(s.pool.list()) == 0 })
	if status := do(t, h, http.MethodDelete, "/api/delete", nil, `{}`); status != 400 {
		t.Errorf("a deletion of no model: status %d", status)
	}
	if status := do(t, h, http.MethodDelete, "/api/delete", nil, `{"model":"base"}`); status != 404 {
		t.Errorf("deleted again with status %d", status)
	}
}

// checkShown looks at what /api/show and /api/ps say about the model brief.
func checkShown(t *testing.T, h *httptest.Server) {
	t.Helper()
	var shown ollamaShown
	askOK(t, h, "/api/show", `{"model":"brief"}`, &shown)
	if want := []string{"completion", "vision", "audio", "tools", "thinking"}; !slices.Equal(shown.Capabilities, want) {
		t.Errorf("capabilities %q, want %q", shown.Capabilities, want)
	}
	if shown.System != "Answer briefly." || shown.License != "MIT" || len(shown.Messages) != 2 || !strings.Contains(shown.Parameters, "zebra") ||
		!strings.Contains(shown.Modelfile, "SYSTEM") || shown.Template == "" || shown.ModelInfo["general.architecture"] != "inkling" ||
		shown.ModelInfo["inkling.context_length"] == nil || shown.ModelInfo[keyTokens] != nil || shown.ProjectorInfo["general.architecture"] != "clip" || shown.Tensors != nil {
		t.Errorf("shown %s", quote(shown))
	}
	var verbose ollamaShown
	askOK(t, h, "/api/show", `{"name":"brief:latest","verbose":true}`, &verbose)
	if len(verbose.Tensors) == 0 || verbose.ModelInfo[keyTokens] == nil {
		t.Error("verbose shows no tensors or tokens")
	}
	_, data := get(t, h, "/api/ps")
	ps := unmarshal[struct {
		Models []struct {
			Name    string
			Size    int64
			VRAM    *int64    `json:"size_vram"`
			Expires time.Time `json:"expires_at"`
			Context int       `json:"context_length"`
		}
	}](t, string(data))
	if len(ps.Models) != 1 || ps.Models[0].Name != "brief:latest" || ps.Models[0].Size == 0 || ps.Models[0].VRAM == nil || ps.Models[0].Context != 2048 ||
		time.Until(ps.Models[0].Expires) < 10*365*24*time.Hour {
		t.Errorf("running %s", data)
	}
}

// TestOllamaStoreErrors: faults of the caller are told as such.
func TestOllamaStoreErrors(t *testing.T) {
	_, h := storeServer(t)
	none := "sha256:" + strings.Repeat("0", 64)
	for _, tt := range []struct {
		name, path, body string
		status           int
		message          string
	}{
		{"bad name", "/api/create", `{"model":"a/b/c/d/e","from":"base"}`, 400, "a/b/c/d/e"},
		{"nothing to make it of", "/api/create", `{"model":"a"}`, 400, "from: is missing"},
		{"no such base", "/api/create", `{"model":"a","from":"base"}`, 404, "not found"},
		{"a path of the server", "/api/create", `{"model":"a","from":"/etc/passwd"}`, 400, ""},
		{"no such blob", "/api/create", `{"model":"a","files":{"a.gguf":"` + none + `"}}`, 400, "no such blob"},
		{"no digest", "/api/create", `{"model":"a","files":{"a.gguf":"/etc/passwd"}}`, 400, "files.a.gguf: "},
		{"quantise", "/api/create", `{"model":"a","from":"base","quantize":"q4_K_M"}`, 400, "quantize: "},
		{"parameter", "/api/create", `{"model":"a","from":"base","parameters":{"warp":9}}`, 400, "parameters.warp: "},
		{"template of Ollama", "/api/create", `{"model":"a","from":"base","template":"{{ .Prompt }}"}`, 400, "template: "},
		{"modelfile", "/api/create", `{"name":"a","modelfile":"FROM base\nNONSENSE x"}`, 400, "modelfile: line 2"},
		{"other registry", "/api/pull", `{"model":"llama3"}`, 400, "model: "},
		{"copy", "/api/copy", `{"source":"base","destination":"b"}`, 404, "not found"},
		{"copy of nothing", "/api/copy", `{"destination":"b"}`, 400, "source: is missing"},
		{"copy to nowhere", "/api/copy", `{"source":"base"}`, 400, "destination: is missing"},
		{"show", "/api/show", `{"model":"base"}`, 404, "not found"},
		{"other content", "/api/blobs/" + none, "abc", 400, "another hash"},
		{"no digest in the path", "/api/blobs/none", "abc", 400, "digest"},
	} {
		status, data := ask(t, h, tt.path, tt.body)
		e := unmarshal[struct{ Error string }](t, string(data))
		if status != tt.status || !strings.Contains(e.Error, tt.message) {
			t.Errorf("%s: status %d: %s", tt.name, status, data)
		}
	}
}
