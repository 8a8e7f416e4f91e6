package clients

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// root is the folder of the module under test.
const root = "../../.."

// serverURL is where the server under test answers.
var serverURL string

// model is the name of the trained test model there.
const model = "tiny-F32"

func TestMain(m *testing.M) { os.Exit(serve(m)) }

// serve builds the commands, converts the model, and runs the tests while the
// server does.
func serve(m *testing.M) int {
	code, err := func() (int, error) {
		dir, err := os.MkdirTemp("", "clients")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
		build := exec.Command("go", "build", "-C", root, "-o", dir+string(filepath.Separator), "./cmd/...")
		if out, err := build.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("go build: %w: %s", err, out)
		}
		convert := exec.Command(filepath.Join(dir, "convert-inkling"), filepath.Join(root, "testdata", "inkling-tiny"), "-o", dir, "--name", "tiny", "--outtype", "f32")
		if out, err := convert.CombinedOutput(); err != nil {
			return 1, fmt.Errorf("convert-inkling: %w: %s", err, out)
		}
		stop, err := start(dir)
		if err != nil {
			return 1, err
		}
		return m.Run(), stop()
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// start runs the server until the function that it returns is called, which
// reports an end other than by SIGTERM.
func start(dir string) (stop func() error, err error) {
	cmd := exec.Command(filepath.Join(dir, "inkling-run"), "serve", filepath.Join(dir, model+".gguf"), "--host", "127.0.0.1", "--port", "0", "--threads", "1", "--kv", "f32")
	cmd.Env = append(os.Environ(), "INKLING_HOME="+filepath.Join(dir, "store"), "INKLING_HOST=", "OLLAMA_HOST=")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stderr)
	for serverURL == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("inkling-run serve: %w: %s", cmd.Wait(), line)
		}
		if _, url, ok := strings.Cut(strings.TrimSpace(line), "listening on "); ok {
			serverURL = url
		}
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // ends with the server
	return func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return cmd.Wait()
	}, nil
}

// item is a line of the evaluation set, as far as it is needed here.
type item struct {
	Messages []struct {
		Content []struct{ Type, Text, Image, Audio string }
	}
	Tools []struct {
		Function struct {
			Name, Description string
			Parameters        map[string]any
		}
	}
	Reference struct {
		Content, Reasoning string
		ToolCall           *struct {
			Name string
			Args map[string]any
		} `json:"tool_call"`
	}
}

// task returns the first item of a task that has one message.
func task(t *testing.T, name string) *item {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "testdata", "inkling-tiny-eval", "dev.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var kind struct{ Task string }
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatalf("no task %s: %v", name, err)
		}
		if err := json.Unmarshal(raw, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Task != name {
			continue
		}
		it := new(item)
		if json.Unmarshal(raw, it) == nil && len(it.Messages) == 1 {
			return it
		}
	}
}

// text is the question of an item.
func (it *item) text() string {
	for _, p := range it.Messages[0].Content {
		if p.Type == "text" {
			return p.Text
		}
	}
	return ""
}

// medium is the picture or sound of an item.
func (it *item) medium(t *testing.T) []byte {
	t.Helper()
	p := it.Messages[0].Content[0]
	data, err := os.ReadFile(filepath.Join(root, "testdata", "inkling-tiny-eval", p.Image+p.Audio))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// mediumBase64 is the same in base64.
func (it *item) mediumBase64(t *testing.T) string {
	return base64.StdEncoding.EncodeToString(it.medium(t))
}

// TestNPM runs OpenAI's and Anthropic's packages for JavaScript.
func TestNPM(t *testing.T) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the JavaScript clients are not tested: %v", err)
		}
	}
	run := func(name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
		cmd.Dir, cmd.Env = "../npm", append(os.Environ(), "INKLING_URL="+serverURL, "INKLING_MODEL="+model)
		return cmd.CombinedOutput()
	}
	if out, err := run("npm", "ci", "--no-audit", "--no-fund"); err != nil {
		t.Skipf("the JavaScript clients are not tested, npm does not install them: %v: %s", err, out)
	}
	out, err := run("node", "--test")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
