package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoadLocal(t *testing.T) {
	dir := t.TempDir()
	want := []byte("some bytes \x00\xff")
	path := filepath.Join(dir, "f.bin")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/f.bin" {
			http.NotFound(w, r)
			return
		}
		w.Write(want)
	}))
	defer srv.Close()
	load := LoadLocal(dir)
	std := base64.StdEncoding.EncodeToString(want)
	for _, source := range []string{"f.bin", path, "file://" + path, srv.URL + "/f.bin", "data:application/octet-stream;base64," + std, "data:;base64," + strings.TrimRight(std, "=")} {
		_, got, err := load(context.Background(), source)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
	if _, got, err := load(context.Background(), "data:,a%20b"); err != nil || string(got) != "a b" {
		t.Errorf("plain data URL: %q, %v", got, err)
	}
	for _, source := range []string{"none.bin", srv.URL + "/none", "data:image/png;base64", "data:;base64,***"} {
		if _, _, err := load(context.Background(), source); err == nil {
			t.Errorf("%s: no error", source)
		}
	}
}
