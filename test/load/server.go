package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// modelName is what the server calls the model.
const modelName = "tiny-F32"

// cacheRAM is the bound of saved states, small enough to be full soon.
const cacheRAM = 16 << 20

// server is inkling-run serve as a process.
type server struct {
	o    *options
	dir  string // of the model, and the store
	url  string
	port string // the same after a restart

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and its log is read
	log  tail
}

// newServer converts the checkpoint and starts the server.
func newServer(ctx context.Context, o *options) (*server, error) {
	dir, err := os.MkdirTemp("", "load")
	if err != nil {
		return nil, err
	}
	s := &server{o: o, dir: dir, port: "0"}
	convert := exec.CommandContext(ctx, filepath.Join(o.bin, "convert-inkling"),
		filepath.Join(o.testdata, "inkling-tiny"), "-o", dir, "--name", "tiny", "--outtype", "f32")
	if out, err := convert.CombinedOutput(); err != nil {
		s.close()
		return nil, fmt.Errorf("%s: %w: %s", convert, err, out)
	}
	if err := s.start(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// start runs the server and waits until it listens.
func (s *server) start() error {
	args := []string{
		"serve", filepath.Join(s.dir, modelName+".gguf"), "--port", s.port, "--keep-alive", "-1",
		"--parallel", strconv.Itoa(s.o.parallel), "--queue", strconv.Itoa(2 * s.o.streams), "--ctx-size", "2048", "--cache-ram", strconv.Itoa(cacheRAM >> 20),
	}
	cmd := exec.Command(filepath.Join(s.o.bin, "inkling-run"), append(args, s.o.serveArgs...)...)
	for _, v := range os.Environ() { // settings of a user's server are not for this one
		if !strings.HasPrefix(v, "INKLING_") && !strings.HasPrefix(v, "OLLAMA_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "INKLING_HOME="+filepath.Join(s.dir, "home"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	listening, done := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
				listening <- url
				continue
			}
			s.log.add(lines.Text())
		}
		_, _ = io.Copy(io.Discard, stderr) // a line too long for the scanner must not stop the server
	}()
	s.mu.Lock()
	s.cmd, s.done = cmd, done
	s.mu.Unlock()
	select {
	case s.url = <-listening:
		s.port = s.url[strings.LastIndexByte(s.url, ':')+1:]
		return nil
	case <-done:
	case <-time.After(30 * time.Second):
	}
	return fmt.Errorf("%s does not listen:\n%s", cmd, s.log.String())
}

// kill ends the process without a word to it.
func (s *server) kill() error { return s.end(syscall.SIGKILL) }

// end sends a signal and waits.
func (s *server) end(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		return err
	}
	<-s.done
	err := s.cmd.Wait()
	s.cmd = nil
	return err
}

// close stops the server and removes its files.
func (s *server) close() {
	_ = s.kill() // it reports the signal
	os.RemoveAll(s.dir)
}

// alive is an error if the process has ended.
func (s *server) alive() error {
	select {
	case <-s.done:
		return fmt.Errorf("the server has ended:\n%s", s.log.String())
	default:
		return nil
	}
}

// metrics reads /metrics.
func (s *server) metrics(ctx context.Context) (sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return sample{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return sample{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return sample{}, err
	}
	return parseSample(data)
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines [][]byte
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, []byte(line))
	if len(t.lines) > 40 {
		t.lines = t.lines[1:]
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(t.lines, []byte("\n")))
}
