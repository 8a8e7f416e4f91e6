package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServe: the program listens, answers, tells a second one that the address is
// taken, and ends on a signal with its requests answered.
func TestServe(t *testing.T) {
	env := append(os.Environ(), "INKLING_HOME="+t.TempDir(), "INKLING_HOST=", "OLLAMA_HOST=")
	cmd := command(t, "serve", filepath.Join(models, "tiny-F32.gguf"), "--port", "0", "--threads", "1", "--ctx-size", "512", "--parallel", "1")
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	url := ""
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("no address: %v", err)
		}
		if _, rest, ok := strings.Cut(line, "listening on "); ok {
			url = strings.TrimSpace(rest)
		}
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}

	second := command(t, "serve", "--port", port)
	second.Env = env
	out, err := second.CombinedOutput()
	if second.ProcessState == nil || second.ProcessState.ExitCode() != exitError || !strings.Contains(string(out), "is in use") || !strings.Contains(string(out), "--port") {
		t.Errorf("a second server: %v: %s", err, out)
	}

	body := `{"model":"tiny-F32","temperature":0,"max_tokens":30,"reasoning_effort":"none","messages":[{"role":"user","content":"What is the capital of France?"}],"stream":true}`
	resp, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(answer), "data: [DONE]\n\n") {
		t.Errorf("error %v, the answer ends with %q", err, answer[max(0, len(answer)-100):])
	}
	rest, _ := io.ReadAll(lines)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server: %v: %s", err, rest)
	}
}
