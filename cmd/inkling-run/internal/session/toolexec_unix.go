//go:build unix

package session

import (
	"os/exec"
	"syscall"
)

// ownGroup puts a command and what it starts into a process group of its own,
// which is killed as a whole; ctrl-C on the terminal is for this program alone.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
