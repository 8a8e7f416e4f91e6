package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestChat talks to the trained checkpoint; what it says is in its evaluation set.
func TestChat(t *testing.T) {
	media := filepath.Join("..", "..", "testdata", "inkling-tiny-eval", "media")
	term := openTerminal(t, "run", filepath.Join(models, "tiny-F32.gguf"), "-t", "1")
	term.await(chatPrompt)

	// Several turns are one conversation.
	term.send("My favourite food is cake.\r")
	term.await(chatPrompt)
	term.send("Which month comes after September?\r")
	term.await("October comes after September.")
	term.await(" cached; answer: ")
	term.await(chatPrompt)
	term.send("What is my favourite food?\r")
	term.await("Your favourite food is cake.")
	term.await(chatPrompt)

	// Until it is forgotten.
	term.send("/clear\r")
	term.await("begins anew")
	term.await(chatPrompt)
	term.send("What is the colour of the sea?\r")
	if got := term.await("The sea is blue.\r\n"); !strings.Contains(got, dimmed+"Thinking...\r\nI know this fact.\r\n...done thinking."+undimmed+"\r\n\r\n") {
		t.Errorf("thinking on the terminal: %q", got)
	}
	if got := term.await(chatPrompt); strings.Contains(got, "cached") {
		t.Errorf("after /clear: %q", got)
	}

	// A picture, dragged in; one that is none.
	term.send("/clear\r")
	term.await(chatPrompt)
	term.send("/image '" + media + "/000_0.png'\r")
	term.await("before the next message: 1 picture" + undimmed)
	term.await(chatPrompt)
	term.send("Describe the picture.\r")
	term.await("A pink cross.")
	term.await(chatPrompt)
	term.send("/image nowhere.png\r")
	term.await("open nowhere.png: no such file or directory")
	term.await(chatPrompt)
	term.send("/image app.go\r")
	term.await("before the next message: 1 picture" + undimmed)
	term.await(chatPrompt)
	term.send("Describe the picture.\r")
	term.await("app.go: ")
	term.await(chatPrompt)

	// A sound; paths on lines of their own, before the words and after them.
	term.send("/clear\r")
	term.await(chatPrompt)
	term.send("/audio " + media + "/047.wav\r")
	term.await("before the next message: 1 sound" + undimmed)
	term.await(chatPrompt)
	term.send("Transcribe the speech.\r")
	term.await("the number is sixty four")
	term.await(chatPrompt)
	term.send("/clear\r")
	term.await(chatPrompt)
	term.send("\x1b[200~" + media + "/042_0.png\rWhich picture shows a star?\r'" + media + "/042_1.png'\x1b[201~\r")
	term.await("before the next message: 2 pictures" + undimmed)
	term.await("The second picture.")
	term.await(chatPrompt)

	// A folder of numbered pictures.
	clip := t.TempDir()
	for _, name := range []string{"f1.png", "f2.png"} {
		copyFile(t, filepath.Join(clip, name), filepath.Join(media, "000_0.png"))
	}
	term.send(clip + "\r")
	term.await("before the next message: 1 video" + undimmed)
	term.await(chatPrompt)
	term.send("/video " + clip + ":fps=4\r")
	term.await("before the next message: 2 videos" + undimmed)
	term.await(chatPrompt)
	term.send("Describe the picture.\r")
	term.await("answer: ")
	term.await(chatPrompt)
	term.send("/video nowhere\r")
	term.await("stat nowhere: no such file or directory")
	term.await(chatPrompt)
	term.send("/audio\r")
	term.await("/audio: no file")
	term.await(chatPrompt)

	// Help, and what is no command.
	term.send("/?\r")
	term.await("/image FILE")
	term.await(chatPrompt)
	term.send("/walk\r")
	term.await("/walk is no command")
	term.await(chatPrompt)

	// A paste of two lines is one message.
	term.send("/clear\r")
	term.await(chatPrompt)
	term.send("\x1b[200~What is the colour\rof the sea?\x1b[201~\r")
	term.await(chatMore)
	term.await("The sea is blue.")
	term.await(chatPrompt)

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
		term.await(chatPrompt)
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
	term.await(chatPrompt)
	term.send("half a line" + ctrlC)
	term.await("ctrl-D or /bye leaves")
	term.await(chatPrompt)
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
		leave func(*console) error
		want  int
	}{
		{"ctrl-D", func(term *console) error { term.send(ctrlD); return nil }, exitOK},
		{"terminated", func(term *console) error { return term.cmd.Process.Signal(syscall.SIGTERM) }, exitInterrupted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			term := openTerminal(t, "run", filepath.Join(models, "tiny-F32.gguf"), "-t", "1")
			term.await(chatPrompt)
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
