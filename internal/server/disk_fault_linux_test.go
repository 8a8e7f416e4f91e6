package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFaultDiskFull sends a store more than its disk holds. The disk is one in
// memory, which this test mounts in a namespace of its own, as a process of its own.
func TestFaultDiskFull(t *testing.T) {
	const child = "TEST_DISK_FULL"
	if os.Getenv(child) != "" {
		fillDisk(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFaultDiskFull$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.Process == nil:
		t.Skipf("no namespaces here: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("%s", out)
	case err != nil || !strings.Contains(string(out), "--- PASS: TestFaultDiskFull"):
		t.Errorf("%v\n%s", err, out)
	}
}

// fillDisk is the test in its namespace.
func fillDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("no disks in memory here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
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
