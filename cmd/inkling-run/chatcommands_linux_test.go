package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/internal/chat"
)

// openChat waits for the first prompt.
func openChat(t *testing.T, env []string, args ...string) *console {
	t.Helper()
	term := openTerminalIn(t, env, append([]string{"run", filepath.Join(models, "tiny-F32.gguf"), "-t", "1"}, args...)...)
	term.await("\x1b[?2004h" + chatPrompt)
	return term
}

// exchange is a line and what the terminal then has.
type exchange struct {
	line string
	want []string // in the answer
	not  []string // not in it
}

func (term *console) try(list []exchange) {
	term.t.Helper()
	for _, x := range list {
		got := term.enter(x.line)
		for _, want := range x.want {
			if !strings.Contains(got, want) {
				term.t.Errorf("after %q: %q, want %q in it", x.line, got, want)
			}
		}
		for _, not := range x.not {
			if strings.Contains(got, not) {
				term.t.Errorf("after %q: %q, want no %q in it", x.line, got, not)
			}
		}
	}
}

func (term *console) leave() {
	term.t.Helper()
	term.send("/bye\r")
	term.wantStatus(exitOK)
	if !term.cooked() {
		term.t.Error("the terminal stays raw")
	}
}

func TestChatSettings(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schema, []byte(`{"enum": ["blue", "green"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	term := openChat(t, []string{"INKLING_HOME=" + t.TempDir()})
	term.try([]exchange{
		{"/set", []string{"parameter NAME VALUE", "nohistory"}, nil},
		{"/set parameter temperature 0.5", []string{"set"}, nil},
		{"/set parameter stop blue", []string{"set"}, nil},
		{"/set parameter num_predict 40", []string{"set"}, nil},
		{"/set parameter seed 5", []string{"set"}, nil},
		{"/show parameters", []string{"temperature        0.5\r\n", "num_predict        40\r\n", "seed               5\r\n", "stop               \"blue\"\r\n"}, nil},
		{"/set parameter temperature hot", []string{`parameter temperature: "hot" is no number`}, nil},
		{"/set parameter num_ctx 9", []string{"num_ctx counts when the model is loaded: --ctx-size"}, nil},
		{"/set parameter", []string{"want /set parameter NAME VALUE"}, nil},
		{"/set parameter temperature 0", []string{"set"}, nil},
		{"What is the colour of the sea?", []string{"Thinking...", "The sea is "}, []string{"blue"}},

		{"/clear", []string{"begins anew"}, nil},
		{"/set nothink", []string{"set"}, nil},
		{"What is the colour of the sea?", []string{"The sea is "}, []string{"Thinking"}},
		{"/set think low", []string{"set"}, nil},
		{"/effort", []string{"effort: low"}, nil},
		{"/effort huge", []string{`reasoning effort "huge"`}, nil},
		{"/effort high", []string{"effort: high"}, nil},

		{"/clear", []string{"begins anew"}, nil},
		{"/set parameter stop .", []string{"set"}, nil},
		{"/set format " + schema, []string{"set"}, nil},
		{"What is the colour of the sea?", []string{"\"blue\"\r\n"}, nil},
		{"/set format nowhere.json", []string{"open nowhere.json: no such file"}, nil},
		{"/set noformat", []string{"set"}, nil},

		{"/set system You are Inkling Tiny.", []string{"set"}, nil},
		{"/show system", []string{"You are Inkling Tiny.\r\n"}, nil},
		{"/clear", []string{"begins anew"}, nil},
		{"/show messages", []string{"system: You are Inkling Tiny.\r\n"}, []string{"user:"}},
		{"/set system", []string{"set"}, nil},
		{"/show system", []string{"(none)"}, nil},

		{"/set verbose", []string{"set"}, nil},
		{"Which month comes after September?", []string{"October comes after September", "memory: weights"}, nil},
		{"/set quiet", []string{"set"}, nil},
		{"Which month comes after September?", []string{"October comes after September"}, []string{"answer:"}},

		{"/show", []string{"architecture  inkling", "context       4096 tokens, of 8192", "takes         text, pictures, sounds, videos"}, nil},
		{"/show template", []string{"the Inkling message protocol"}, nil},
		{"/show modelfile", []string{"the model is a file, without a Modelfile"}, nil},
		{"/show nothing", []string{"/show nothing: want info, "}, nil},
		{"/set nothing", []string{"/set nothing: unknown"}, nil},
		{"/set quiet 1", []string{"/set quiet takes nothing behind it"}, nil},
		{"/clear all", []string{"/clear takes nothing behind it"}, nil},
	})

	// A system message of two lines, and a message.
	term.send("/set system \"\"\"You are\r")
	term.await(chatMore)
	term.send("Inkling Tiny.\"\"\"\r")
	term.await("\x1b[?2004h" + chatPrompt)
	term.try([]exchange{{"/show system", []string{"You are\r\nInkling Tiny.\r\n"}, nil}})
	term.send("\"\"\"Which month comes\r")
	term.await(chatMore)
	term.send("after September?\r")
	term.await(chatMore)
	term.send("\"\"\"\r")
	term.await("\x1b[?2004h" + chatPrompt)
	term.try([]exchange{{"/show messages", []string{"user: Which month comes\r\nafter September?\r\n"}, nil}})
	term.leave()
}

// TestChatFiles saves a conversation and goes on with it in another chat.
func TestChatFiles(t *testing.T) {
	dir := t.TempDir()
	env := []string{"INKLING_HOME=" + dir}
	file := filepath.Join(dir, "talk.json")
	media := filepath.Join("..", "..", "testdata", "inkling-tiny-eval", "media")
	term := openChat(t, env)
	term.try([]exchange{
		{"/save " + file, []string{"there are no messages yet"}, nil},
		{"/retry", []string{"there is no message to answer"}, nil},
		{"/undo", []string{"there is no message to forget"}, nil},
		{"/image " + media + "/000_0.png", []string{"1 picture"}, nil},
		{"Describe the picture.", []string{"A pink cross."}, nil},
		{"My favourite food is cake.", nil, nil},
		{"Which month comes after September?", nil, nil},
		{"/undo", []string{"forgotten: Which month comes after September?"}, nil},
		{"/retry", []string{"answer: "}, nil},
		{"/save " + file, []string{"4 messages are in " + file}, nil},
		{"/save " + dir, []string{"is a folder, want a file"}, nil},
		{"/save " + dir + "/none/x", []string{"no such file or directory"}, nil},
	})
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	conv, err := chat.ParseMessages(data)
	if err != nil || len(conv.Messages) != 4 {
		t.Fatalf("%v in %s", err, data)
	}
	abs, err := filepath.Abs(filepath.Join(media, "000_0.png"))
	if err != nil {
		t.Fatal(err)
	}
	if got := conv.Messages[0].Content[0].Source; got != abs {
		t.Errorf("the picture is saved as %q, want %q", got, abs)
	}

	// Nothing is written over without a yes.
	term.enter("What is the colour of the sea?")
	for _, answer := range []string{"", "n", ctrlC} {
		term.send("/save " + file + "\r")
		term.await("is there already")
		term.await("Write over it? [y/N] ")
		term.send(answer)
		if answer != ctrlC {
			term.send("\r")
		}
		term.await("not saved")
		term.await("\x1b[?2004h" + chatPrompt)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(data, again) {
		t.Errorf("the file is another one (%v)", err)
	}
	term.send("/save '" + file + "'\r")
	term.await("Write over it? [y/N] ")
	term.send("y\r")
	term.await("6 messages are in ")
	term.await("\x1b[?2004h" + chatPrompt)
	term.leave()

	term = openChat(t, env)
	term.try([]exchange{
		{"/load", []string{"/load: no file"}, nil},
		{"/load nowhere.json", []string{"open nowhere.json: no such file"}, nil},
		{"/load app.go", []string{"app.go: json: "}, nil},
		{"/load " + file, []string{"6 messages"}, nil},
		{"/show messages", []string{"user: (1 picture) Describe the picture.\r\n", "user: My favourite food is cake.\r\n"}, nil},
		{"What is my favourite food?", []string{"Your favourite food is "}, nil},
		{"/undo", []string{"forgotten: What is my favourite food?"}, nil},
		{"/show messages", []string{"colour of the sea"}, []string{"What is my favourite food?"}},
	})
	term.leave()
}

// TestChatHistory finds the lines of one chat in the next one.
func TestChatHistory(t *testing.T) {
	home := t.TempDir()
	env := []string{"INKLING_HOME=" + home}
	term := openChat(t, env)
	term.enter("/effort none")
	term.enter("What is the colour of the sea?")
	term.enter("/set nohistory")
	term.enter("/effort low")
	term.leave()

	term = openChat(t, env, "--no-history")
	term.send(arrowUp + "\r")
	term.await("\x1b[?2004h" + chatPrompt) // there is none
	term.enter("/effort max")
	term.leave()

	term = openChat(t, env)
	term.send(arrowUp)
	term.await("/set nohistory")
	term.send(arrowUp + "\r")
	term.await("The sea is blue.")
	term.await("\x1b[?2004h" + chatPrompt)
	term.leave()

	want := "/effort none\nWhat is the colour of the sea?\n/set nohistory\nWhat is the colour of the sea?\n/bye\n"
	data, err := os.ReadFile(filepath.Join(home, "history"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(data)); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
}

// TestChatContext goes on when the context is full.
func TestChatContext(t *testing.T) {
	term := openChat(t, []string{"INKLING_HOME=" + t.TempDir()}, "-c", "64", "--system", "You are Inkling Tiny.", "--effort", "none")
	left := false
	for range 6 {
		got := term.enter("What is the colour of the sea?")
		if strings.Contains(got, "context is full") || !strings.Contains(got, "The sea is") {
			t.Errorf("no answer: %q", got)
		}
		left = left || strings.Contains(got, "messages are left out (--ctx-size)")
	}
	if !left {
		t.Error("nothing was left out")
	}
	term.try([]exchange{
		{"/show messages", []string{"system: You are Inkling Tiny.\r\nuser: "}, nil},
		{strings.Repeat("word ", 100), []string{"the context 64: ", "this message is left out"}, nil},
		{"What is the colour of the sea?", []string{"The sea is blue."}, nil},
	})
	term.leave()
}

// TestChatPlain prints an answer as it is written, without colours.
func TestChatPlain(t *testing.T) {
	term := openChat(t, []string{"INKLING_HOME=" + t.TempDir(), "NO_COLOR=1"})
	got := term.enter("What is the colour of the sea?")
	if !strings.Contains(got, "The sea is blue.\r\n") || strings.Contains(got, dimmed) {
		t.Errorf("with NO_COLOR: %q", got)
	}
	term.leave()
}

const toolsForChat = `[{"type": "function", "function": {"name": "play_music", "description": "Play music of an artist.",
 "parameters": {"type": "object", "properties": {"artist": {"type": "string"}}, "required": ["artist"]}}}]`

func TestChatTools(t *testing.T) {
	dir := t.TempDir()
	tools, out := filepath.Join(dir, "tools.json"), filepath.Join(dir, "calls")
	if err := os.WriteFile(tools, []byte(toolsForChat), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := func() int {
		data, err := os.ReadFile(out)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if !json.Valid(line) {
				t.Errorf("the command gets %q", line)
			}
		}
		return bytes.Count(data, []byte("\n"))
	}
	term := openChat(t, []string{"INKLING_HOME=" + dir}, "--tool-exec", `cat >>'`+out+`'; echo '{"status":"playing"}'`)
	term.try([]exchange{
		{"/tools", []string{"no tools"}, nil},
		{"/tools nowhere.json", []string{"open nowhere.json: no such file"}, nil},
		{"/tools " + tools, []string{"1 tools; calls are carried out by --tool-exec"}, nil},
		{"/tools", []string{"tools: play_music"}, nil},
	})
	for _, tc := range []struct {
		answer string
		want   string // after it
		calls  int    // that were carried out until then
	}{
		{"n\r", "answer: ", 0},
		{"\r", "answer: ", 0},
		{ctrlC, "(stopped)", 0},
		{"y\r", "I am playing music by Uma.", 1},
		{"a\r", "I am playing music by Uma.", 2},
	} {
		term.enter("/clear")
		term.send("Play music by Uma.\r")
		term.await(`call: play_music {"artist":"Uma"}`)
		term.await("Run play_music? [y]es, [N]o, [a]lways: ")
		term.send(tc.answer)
		term.await(tc.want)
		term.await("\x1b[?2004h" + chatPrompt)
		if got := calls(); got != tc.calls {
			t.Errorf("after %q: %d calls, want %d", tc.answer, got, tc.calls)
		}
	}
	term.enter("/clear")
	term.try([]exchange{{"Play music by Uma.", []string{`result: {"status":"playing"}`, "I am playing music by Uma."}, []string{"Run play_music?"}}})
	term.leave()
}

// TestChatToolsByHand has the person do what the model calls for.
func TestChatToolsByHand(t *testing.T) {
	dir := t.TempDir()
	tools := filepath.Join(dir, "tools.json")
	if err := os.WriteFile(tools, []byte(toolsForChat), 0o600); err != nil {
		t.Fatal(err)
	}
	term := openChat(t, []string{"INKLING_HOME=" + dir}, "--tools", tools)
	term.send("Play music by Uma.\r")
	term.await(`{"name":"play_music","arguments":{"artist":"Uma"}}`)
	term.await("result of play_music: ")
	term.send(`{"status":"playing"}` + "\r")
	term.await("I am playing music by Uma.")
	term.await("\x1b[?2004h" + chatPrompt)
	term.try([]exchange{
		{"/show messages", []string{`calls play_music {"artist":"Uma"}`, `tool: {"status":"playing"}`}, nil},
		{"/tools off", []string{"no tools"}, nil},
	})
	term.leave()
}

// TestTerminalTools asks before the calls of a single answer too.
func TestTerminalTools(t *testing.T) {
	dir := t.TempDir()
	tools := filepath.Join(dir, "tools.json")
	if err := os.WriteFile(tools, []byte(toolsForChat), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		answer, want string
		status       int
	}{
		{"y\r", "I am playing music by Uma.\r\n", exitOK},
		{ctrlC, "inkling-run: interrupted", exitInterrupted},
	} {
		term := openTerminal(t, "run", filepath.Join(models, "tiny-F32.gguf"), "-t", "1", "Play music by Uma.",
			"--tools", tools, "--tool-exec", `echo '{"status":"playing"}'`)
		term.await("Run play_music? [y]es, [N]o, [a]lways: ")
		term.send(tc.answer)
		term.await(tc.want)
		term.wantStatus(tc.status)
		if !term.cooked() {
			t.Errorf("after %q the terminal stays raw", tc.answer)
		}
	}
}
