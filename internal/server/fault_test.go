package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// What the tests of faults share.

// errOutOfMemory is an error as the binding makes it.
var errOutOfMemory = fmt.Errorf("device CPU: %w: 70000 MiB do not fit, 100 of 1000 are free", engine.ErrOutOfMemory)

// clients runs f for n clients at once.
func clients(t *testing.T, n int, f func(i int)) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// post sends JSON and wants a status.
func post(t *testing.T, url, body string, status int) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != status {
		t.Errorf("%s %s: status %d, want %d, error %v: %s", url, body, resp.StatusCode, status, err, data)
	}
}

func getJSON(t *testing.T, url string, dst any) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(dst); err != nil {
		t.Fatal(err)
	}
}

func wantAnswer(t *testing.T, url, body, want string) {
	t.Helper()
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	var got chatResponse
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK || len(got.Choices) != 1 || got.Choices[0].Message.Content.text != want {
		t.Errorf("status %d, error %v, answered %s, want %q", resp.StatusCode, err, quote(got), want)
	}
}

// remove deletes a model of the store by Ollama's route.
func remove(t *testing.T, url, name string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodDelete, url+"/api/delete", strings.NewReader(`{"model":"`+name+`"}`))
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("delete %s: status %d", name, resp.StatusCode)
	}
}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// putModel sends the trained model's file as a blob to all servers at once, and
// returns its digest.
func putModel(t *testing.T, servers ...string) string {
	t.Helper()
	data, err := os.ReadFile(tinyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	clients(t, len(servers), func(i int) {
		resp, err := http.Post(servers[i]+"/api/blobs/"+digest, "application/octet-stream", bytes.NewReader(data))
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
			t.Errorf("blob: status %d", resp.StatusCode)
		}
	})
	return digest
}
