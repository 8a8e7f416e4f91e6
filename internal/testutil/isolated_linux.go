package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// isolated tells a child process which test it is for.
const isolated = "INKLING_TEST_ISOLATED"

// Isolated runs the calling test again in a process that is root in namespaces of its
// own, CLONE_NEWNS or CLONE_NEWNET, and reports true in that process. In the first one
// it reports false: the result is the child's, and the test is to return. It skips the
// test where there are no such namespaces, and where the child skips it.
func Isolated(t *testing.T, namespaces uintptr) bool {
	t.Helper()
	if os.Getenv(isolated) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), isolated+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | namespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Errorf("%v:\n%s", err, text)
	case err != nil:
		t.Skip("no namespaces here: ", err)
	case strings.Contains(string(text), "--- SKIP: "+t.Name()):
		t.Skipf("skipped in namespaces of its own:\n%s", text)
	case !strings.Contains(string(text), "--- PASS: "+t.Name()):
		t.Errorf("the child ran no test:\n%s", text)
	}
	return false
}

// SmallDisk mounts a disk in memory of so many MiB on a folder of the test's, in the
// child process of [Isolated] with CLONE_NEWNS. It skips the test where it can not.
func SmallDisk(t *testing.T, mib int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mib)); err != nil {
		t.Skip("no disks in memory here: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
