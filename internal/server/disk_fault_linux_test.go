package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/inkling-go/inkling/internal/testutil"
)

// TestFaultDiskFull sends a store more than its disk holds, in a process with mounts
// of its own.
func TestFaultDiskFull(t *testing.T) {
	if !testutil.Isolated(t, syscall.CLONE_NEWNS) {
		return
	}
	dir := testutil.SmallDisk(t, 2)
	o := testOptions(t)
	o.Store = openStore(t, dir)
	_, h := newTestServer(t, o)
	put := func(data []byte) int {
		sum := sha256.Sum256(data)
		resp, err := http.Post(h.URL+"/api/blobs/sha256:"+hex.EncodeToString(sum[:]), "application/octet-stream", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for range 3 { // what did not fit is gone again
		if status := put(make([]byte, 8<<20)); status != http.StatusInsufficientStorage {
			t.Errorf("8 MiB on a disk of 2: status %d", status)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "blobs", "*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, error %v", left, err)
	}
	if status := put(make([]byte, 1<<20)); status != http.StatusCreated {
		t.Errorf("1 MiB on a disk of 2: status %d", status)
	}
	if status := put(bytes.Repeat([]byte{1}, 2<<20)); status != http.StatusInsufficientStorage {
		t.Errorf("2 MiB more: status %d", status)
	}
	var tags struct{ Models []struct{ Name string } }
	getJSON(t, h.URL+"/api/tags", &tags)
	if len(tags.Models) != 1 {
		t.Errorf("models %v", tags.Models)
	}
	wantAnswer(t, h.URL, strings.Replace(capital, `"a"`, `"tiny"`, 1), paris)
}
