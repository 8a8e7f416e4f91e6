package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is the program on a pseudo-terminal, and the person before it.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu     sync.Mutex
	screen bytes.Buffer // all that came
	seen   int          // bytes of it that were waited for
}

// openTerminal starts the program on a terminal of its own.
func openTerminal(t *testing.T, args ...string) *terminal {
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
	term := &terminal{t: t, master: master, cmd: command(t, args...)}
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
func (term *terminal) send(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// await waits for a text after what was waited for before, and returns what
// comes up to its end.
func (term *terminal) await(text string) string {
	term.t.Helper()
	return term.awaitFunc(fmt.Sprintf("%q", text), func(screen string) int {
		if i := strings.Index(screen, text); i >= 0 {
			return i + len(text)
		}
		return -1
	})
}

// awaitBytes waits for so many bytes.
func (term *terminal) awaitBytes(n int) {
	term.t.Helper()
	term.awaitFunc(fmt.Sprintf("%d bytes", n), func(screen string) int {
		if len(screen) >= n {
			return n
		}
		return -1
	})
}

// awaitFunc waits until find knows how much of the new text it wants.
func (term *terminal) awaitFunc(what string, find func(string) int) string {
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
func (term *terminal) status() int {
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

func (term *terminal) wantStatus(want int) {
	term.t.Helper()
	if got := term.status(); got != want {
		term.t.Errorf("exit status %d, want %d", got, want)
	}
}

// cooked reports whether the terminal is as it was before the program: with
// echo, line ends and signals.
func (term *terminal) cooked() bool {
	term.t.Helper()
	state, err := unix.IoctlGetTermios(int(term.master.Fd()), unix.TCGETS)
	if err != nil {
		term.t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0 && state.Lflag&unix.ISIG != 0 && state.Oflag&unix.OPOST != 0
}

const ctrlC, ctrlD = "\x03", "\x04"

// TestChat talks to the trained checkpoint; what it says is in its evaluation set.
func TestChat(t *testing.T) {
	media := filepath.Join("..", "..", "testdata", "inkling-tiny-eval", "media")
	term := openTerminal(t, "run", filepath.Join(models, "tiny-F32.gguf"), "-t", "1")
	term.await(promptLine)

	// Several turns are one conversation.
	term.send("My favourite food is cake.\r")
	term.await(promptLine)
	term.send("Which month comes after September?\r")
	term.await("October comes after September.")
	term.await(" cached; answer: ")
	term.await(promptLine)
	term.send("What is my favourite food?\r")
	term.await("Your favourite food is cake.")
	term.await(promptLine)

	// Until it is forgotten.
	term.send("/clear\r")
	term.await("begins anew")
	term.await(promptLine)
	term.send("What is the colour of the sea?\r")
	if got := term.await("The sea is blue.\r\n"); !strings.Contains(got, dimOn+"Thinking...\r\nI know this fact.\r\n...done thinking."+dimOff+"\r\n\r\n") {
		t.Errorf("thinking on the terminal: %q", got)
	}
	if got := term.await(promptLine); strings.Contains(got, "cached") {
		t.Errorf("after /clear: %q", got)
	}

	// A picture, dragged in; one that is none.
	term.send("/clear\r")
	term.await(promptLine)
	term.send("/image '" + media + "/000_0.png'\r")
	term.await("before the next message: 1 picture" + dimOff)
	term.await(promptLine)
	term.send("Describe the picture.\r")
	term.await("A pink cross.")
	term.await(promptLine)
	term.send("/image nowhere.png\r")
	term.await("open nowhere.png: no such file or directory")
	term.await(promptLine)
	term.send("/image chat.go\r")
	term.await("before the next message: 1 picture" + dimOff)
	term.await(promptLine)
	term.send("Describe the picture.\r")
	term.await("chat.go: ")
	term.await(promptLine)

	// A sound; paths on lines of their own, before the words and after them.
	term.send("/clear\r")
	term.await(promptLine)
	term.send("/audio " + media + "/047.wav\r")
	term.await("before the next message: 1 sound" + dimOff)
	term.await(promptLine)
	term.send("Transcribe the speech.\r")
	term.await("the number is sixty four")
	term.await(promptLine)
	term.send("/clear\r")
	term.await(promptLine)
	term.send("\x1b[200~" + media + "/042_0.png\rWhich picture shows a star?\r'" + media + "/042_1.png'\x1b[201~\r")
	term.await("before the next message: 2 pictures" + dimOff)
	term.await("The second picture.")
	term.await(promptLine)

	// A folder of numbered pictures.
	clip := t.TempDir()
	for _, name := range []string{"f1.png", "f2.png"} {
		copyFile(t, filepath.Join(clip, name), filepath.Join(media, "000_0.png"))
	}
	term.send(clip + "\r")
	term.await("before the next message: 1 video" + dimOff)
	term.await(promptLine)
	term.send("/video " + clip + ":fps=4\r")
	term.await("before the next message: 2 videos" + dimOff)
	term.await(promptLine)
	term.send("Describe the picture.\r")
	term.await("answer: ")
	term.await(promptLine)
	term.send("/video nowhere\r")
	term.await("stat nowhere: no such file or directory")
	term.await(promptLine)
	term.send("/audio\r")
	term.await("/audio: no file")
	term.await(promptLine)

	// Help, and what is no command.
	term.send("/?\r")
	term.await("/image FILE")
	term.await(promptLine)
	term.send("/walk\r")
	term.await("/walk is no command")
	term.await(promptLine)

	// A paste of two lines is one message.
	term.send("/clear\r")
	term.await(promptLine)
	term.send("\x1b[200~What is the colour\rof the sea?\x1b[201~\r")
	term.await(promptMore)
	term.await("The sea is blue.")
	term.await(promptLine)

	term.send("/bye\r")
	term.wantStatus(exitOK)
	if !term.cooked() {
		t.Error("the terminal stays raw")
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestChatInterrupt stops answers of a model that does not stop by itself.
func TestChatInterrupt(t *testing.T) {
	term := openTerminal(t, "run", filepath.Join(models, "random-F32.gguf"), "-t", "1", "--show-special")
	for range 2 {
		term.await(promptLine)
		term.send("hello\r")
		term.await("hello\r\n")
		term.awaitBytes(100)
		start := time.Now()
		term.send(ctrlC)
		term.await("\x1b[?2004h") // the next prompt begins
		if took := time.Since(start); took > time.Second {
			t.Errorf("an answer goes on for %v", took)
		}
	}
	term.await(promptLine)
	term.send("half a line" + ctrlC)
	term.await("ctrl-D or /bye leaves")
	term.await(promptLine)
	term.send(ctrlD)
	term.wantStatus(exitOK)
	if !term.cooked() {
		t.Error("the terminal stays raw")
	}
}

// TestChatLeave leaves at the prompt in other ways.
func TestChatLeave(t *testing.T) {
	for _, tc := range []struct {
		name  string
		leave func(*terminal) error
		want  int
	}{
		{"ctrl-D", func(term *terminal) error { term.send(ctrlD); return nil }, exitOK},
		{"terminated", func(term *terminal) error { return term.cmd.Process.Signal(syscall.SIGTERM) }, exitInterrupted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			term := openTerminal(t, "run", filepath.Join(models, "tiny-F32.gguf"), "-t", "1")
			term.await(promptLine)
			if err := tc.leave(term); err != nil {
				t.Fatal(err)
			}
			term.wantStatus(tc.want)
			if !term.cooked() {
				t.Error("the terminal stays raw")
			}
		})
	}
}

// TestTerminalAnswer has a prompt, so that there is no chat on the terminal.
func TestTerminalAnswer(t *testing.T) {
	term := openTerminal(t, "run", filepath.Join(models, "tiny-F32.gguf"), "-t", "1", "What is the colour of the sea?")
	term.await("The sea is blue.\r\n")
	term.await("answer: 17 tokens, ")
	term.wantStatus(exitOK)
}
