package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What the program writes on a terminal.
const (
	chatPrompt = ">>> "
	chatMore   = "... "
	dimmed     = "\x1b[2m"
	undimmed   = "\x1b[0m"
)

// console is the program on a pseudo-terminal, and the person before it.
type console struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu     sync.Mutex
	screen bytes.Buffer // all that came
	seen   int          // bytes of it that were waited for
}

// openTerminal starts the program on a terminal of its own, of 80 columns.
func openTerminal(t *testing.T, args ...string) *console {
	t.Helper()
	return openTerminalIn(t, []string{"INKLING_HOME=" + t.TempDir()}, args...)
}

// openTerminalIn is openTerminal with variables of the environment.
func openTerminalIn(t *testing.T, env []string, args ...string) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	term := &console{t: t, master: master, cmd: command(t, args...)}
	term.cmd.Env = append(append(os.Environ(), "TERM=xterm", "NO_COLOR="), env...)
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			term.mu.Lock()
			term.screen.Write(buf[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term
}

// send types.
func (term *console) send(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// await waits for a text after what was waited for before, and returns what
// comes up to its end.
func (term *console) await(text string) string {
	term.t.Helper()
	return term.awaitFunc(fmt.Sprintf("%q", text), func(screen string) int {
		if i := strings.Index(screen, text); i >= 0 {
			return i + len(text)
		}
		return -1
	})
}

// awaitBytes waits for so many bytes.
func (term *console) awaitBytes(n int) {
	term.t.Helper()
	term.awaitFunc(fmt.Sprintf("%d bytes", n), func(screen string) int {
		if len(screen) >= n {
			return n
		}
		return -1
	})
}

// awaitFunc waits until find knows how much of the new text it wants.
func (term *console) awaitFunc(what string, find func(string) int) string {
	term.t.Helper()
	var rest string
	for range 1000 {
		term.mu.Lock()
		rest = term.screen.String()[term.seen:]
		n := find(rest)
		if n >= 0 {
			term.seen += n
		}
		term.mu.Unlock()
		if n >= 0 {
			return rest[:n]
		}
		time.Sleep(20 * time.Millisecond)
	}
	term.t.Fatalf("no %s on the terminal, but %.2000q", what, rest)
	return ""
}

// status waits for the end of the program.
func (term *console) status() int {
	term.t.Helper()
	err := term.cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	term.t.Fatal(err)
	return -1
}

func (term *console) wantStatus(want int) {
	term.t.Helper()
	if got := term.status(); got != want {
		term.t.Errorf("exit status %d, want %d", got, want)
	}
}

// cooked reports whether the terminal is as it was before the program: with
// echo, line ends and signals.
func (term *console) cooked() bool {
	term.t.Helper()
	state, err := unix.IoctlGetTermios(int(term.master.Fd()), unix.TCGETS)
	if err != nil {
		term.t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0 && state.Lflag&unix.ISIG != 0 && state.Oflag&unix.OPOST != 0
}

const ctrlC, ctrlD, arrowUp = "\x03", "\x04", "\x1b[A"

// enter types a line and returns what comes until the next prompt.
func (term *console) enter(line string) string {
	term.t.Helper()
	term.send(line + "\r")
	return term.await("\x1b[?2004h" + chatPrompt)
}
