package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// fixed is a request with the status that it must get.
type fixed struct {
	name, path string
	body       string // empty: GET
	status     int
}

// check sends the request. The body of the answer must be JSON, or Prometheus'
// text.
func (f *fixed) check(ctx context.Context, client *http.Client, url string) error {
	method := http.MethodPost
	if f.body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, url+f.path, strings.NewReader(f.body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != f.status {
		return fmt.Errorf("status %d, want %d: %.300s", resp.StatusCode, f.status, data)
	}
	if !json.Valid(data) && !bytes.HasPrefix(data, []byte("# HELP")) {
		return fmt.Errorf("neither JSON nor metrics: %.300q", data)
	}
	return nil
}

// lookUps are requests that compute little or nothing.
var lookUps = []*fixed{
	{path: "/v1/models", status: 200},
	{path: "/api/tags", status: 200},
	{path: "/api/ps", status: 200},
	{path: "/api/version", status: 200},
	{path: "/health", status: 200},
	{path: "/metrics", status: 200},
	{path: "/api/show", body: `{"model":"` + modelName + `"}`, status: 200},
	{path: "/v1/embeddings", body: `{"model":"` + modelName + `","input":["The happy cow","sleeps at home"]}`, status: 200},
	{path: "/api/embed", body: `{"model":"` + modelName + `","input":"The happy cow"}`, status: 200},
	{path: "/v1/messages/count_tokens", body: `{"model":"` + modelName + `","messages":[{"role":"user","content":"Hi there!"}]}`, status: 200},
}

// badRequests are what confused and hostile clients send.
func badRequests() []*fixed {
	chat := func(name string, status int, with string) *fixed {
		return &fixed{name, "/v1/chat/completions", `{"model":"` + modelName + `",` + with + `}`, status}
	}
	image := func(url string) string {
		return `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}]`
	}
	return []*fixed{
		chat("no messages", 400, `"messages":[]`),
		chat("wrong type", 400, `"messages":"Hi"`),
		chat("wrong role", 400, `"messages":[{"role":"king","content":"Hi"}]`),
		chat("temperature", 400, `"temperature":-3,"messages":[{"role":"user","content":"Hi"}]`),
		chat("not base64", 400, image("data:image/png;base64,@@@@")),
		chat("not a picture", 400, image("data:image/png;base64,aGVsbG8=")),
		chat("a private address", 400, image("http://127.0.0.1:1/x.png")),
		chat("a file", 400, image("file:///etc/passwd")),
		chat("a schema that is none", 400, `"messages":[{"role":"user","content":"Hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"thing"}}}`),
		chat("a tool's name", 400, `"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"get time"}}]`),
		chat("a tool's schema", 400, `"messages":[{"role":"user","content":"Hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"thing"}}}]`),
		chat("no text", 400, `"messages":[{"role":"user","content":[{"type":"text"}]}]`),
		chat("a result of no call", 400, `"messages":[{"role":"user","content":"Hi"},{"role":"tool","content":"1"}]`),
		chat("an empty grammar", 400, `"messages":[{"role":"user","content":"Hi"}],"grammar":""`),
		{"no input", "/v1/responses", `{"model":"` + modelName + `","input":[]}`, 400},
		chat("too long", 400, `"messages":[{"role":"user","content":"`+strings.Repeat("The happy cow. ", 4000)+`"}]`),
		{"deep JSON", "/v1/chat/completions", strings.Repeat(`{"messages":[`, 5000), 400},
		{"cut JSON", "/v1/chat/completions", `{"model":"`, 400},
		{"no such model", "/v1/chat/completions", `{"model":"nobody","messages":[{"role":"user","content":"Hi"}]}`, 404},
		{"no such model, Ollama", "/api/chat", `{"model":"nobody","messages":[{"role":"user","content":"Hi"}]}`, 404},
		{"no such model, Anthropic", "/v1/messages", `{"model":"nobody","max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`, 404},
		{"think", "/api/chat", `{"model":"` + modelName + `","think":"deeply","messages":[{"role":"user","content":"Hi"}]}`, 400},
		{"no such route", "/v1/chat", `{}`, 404},
		{"wrong method", "/api/chat", "", 405},
	}
}
