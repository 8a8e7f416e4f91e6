package server

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// noNetwork tells the child process of TestWithoutNetwork that it is that.
const noNetwork = "INKLING_TEST_NO_NETWORK"

// TestWithoutNetwork serves in a process whose only network is its own loopback device: loading and answering ask nobody.
func TestWithoutNetwork(t *testing.T) {
	if os.Getenv(noNetwork) != "" {
		withoutNetwork(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWithoutNetwork$", "-test.v")
	cmd.Env = append(os.Environ(), noNetwork+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Errorf("%v:\n%s", err, text)
	case err != nil:
		t.Skip("no user namespaces here: ", err)
	case strings.Contains(string(text), "--- SKIP"):
		t.Skipf("no loopback device here:\n%s", text)
	case !strings.Contains(string(text), "--- PASS: TestWithoutNetwork"):
		t.Errorf("the child ran no test:\n%s", text)
	}
}

func withoutNetwork(t *testing.T) {
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
