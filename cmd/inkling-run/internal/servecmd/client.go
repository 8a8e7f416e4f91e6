package servecmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// serverClient asks a running server by Ollama's API.
type serverClient struct {
	base string // address without a slash at the end
	key  string // empty: none
	http http.Client
}

// serverTimeout bounds a request; none of them waits for a model.
const serverTimeout = 30 * time.Second

// maxServerReply bounds what a server answers.
const maxServerReply = 8 << 20

// newServerClient finds the server as serve does: by INKLING_HOST, or else
// OLLAMA_HOST. An address that stands for all of a machine's is that of this one.
func newServerClient() (*serverClient, error) {
	where := cmp.Or(os.Getenv("INKLING_HOST"), os.Getenv("OLLAMA_HOST"))
	addr, err := listenAddress("", "", where)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = defaultHost
	}
	base := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port)}
	if u, err := url.Parse(where); err == nil && u.Scheme == "https" {
		base.Scheme = u.Scheme
		if u.Port() == "" {
			base.Host = u.Host
		}
	}
	return &serverClient{base: base.String(), key: os.Getenv("INKLING_API_KEY"), http: http.Client{Timeout: serverTimeout}}, nil
}

// do sends a request, with a body in JSON unless that is nil, and reads the answer
// into out.
func (s *serverClient) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	resp, err := s.http.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("no server answers at %s: inkling-run serve starts one, INKLING_HOST names another", s.base)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxServerReply))
	if err != nil {
		return fmt.Errorf("%s: %w", s.base, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", s.base, resp.Status, serverMessage(data))
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s%s: %w", s.base, path, err)
	}
	return nil
}

// serverMessage is the error in a body: {"error": "..."}, or what it is.
func serverMessage(body []byte) string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	var text string
	if json.Unmarshal(body, &e) == nil && json.Unmarshal(e.Error, &text) == nil {
		return text
	}
	return strings.TrimSpace(string(body))
}

// loadedModel is a model that a server has in memory.
type loadedModel struct {
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`
	Size     int64     `json:"size"`
	SizeVRAM int64     `json:"size_vram"`
	Expires  time.Time `json:"expires_at"`
}

// loaded lists the models in memory.
func (s *serverClient) loaded(ctx context.Context) ([]loadedModel, error) {
	var reply struct {
		Models []loadedModel `json:"models"`
	}
	err := s.do(ctx, http.MethodGet, "/api/ps", nil, &reply)
	return reply.Models, err
}

// unload takes a model out of memory.
func (s *serverClient) unload(ctx context.Context, name string) error {
	var reply struct{}
	in := map[string]any{"model": name, "keep_alive": 0, "stream": false}
	return s.do(ctx, http.MethodPost, "/api/generate", in, &reply)
}
