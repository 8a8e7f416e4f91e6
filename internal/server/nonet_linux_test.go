package server

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inkling-go/inkling/internal/testutil"
)

// TestWithoutNetwork serves in a process whose only network is its own loopback
// device: loading and answering ask nobody.
func TestWithoutNetwork(t *testing.T) {
	if !testutil.Isolated(t, syscall.CLONE_NEWNET) {
		return
	}
	if err := loopbackUp(); err != nil {
		t.Skip("loopback: ", err)
	}
	if c, err := net.DialTimeout("tcp", "192.0.2.1:80", time.Second); err == nil || !errors.Is(err, syscall.ENETUNREACH) {
		t.Fatalf("dialling out: %v, %v; want no network", c, err)
	}
	_, h := newTestServer(t, testOptions(t))
	var resp struct {
		Choices []struct{ Message struct{ Content string } }
	}
	askOK(t, h, "/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}],"max_tokens":4,"temperature":0,"reasoning_effort":"none"}`, &resp)
	if len(resp.Choices) != 1 {
		t.Errorf("%d answers", len(resp.Choices))
	}
}

// loopbackUp brings lo up, which is down in a new namespace.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
