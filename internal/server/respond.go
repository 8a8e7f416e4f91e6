package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// encodeJSON is a value as one line of JSON with its line feed. Text stays as it
// is: "<" needs no escape outside of web pages.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// writeJSON answers with a value. That the client has gone is nobody's error.
func writeJSON(w http.ResponseWriter, status int, v any) {
	data, err := encodeJSON(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// stream writes an answer piece by piece.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	typ     string // of the content
	begun   bool
}

// Content types of streams.
const (
	typeSSE    = "text/event-stream" // OpenAI, Anthropic
	typeNDJSON = "application/x-ndjson"
)

// newStream returns a stream of the content type. Nothing is sent before the first
// piece, so that an error until then has a status of its own.
func newStream(w http.ResponseWriter, typ string) *stream {
	return &stream{w: w, control: http.NewResponseController(w), typ: typ}
}

// begin sends the header.
func (s *stream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	h := s.w.Header()
	h.Set("Content-Type", s.typ)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // proxies must not collect pieces
	s.w.WriteHeader(http.StatusOK)
	return s.flush()
}

// data sends a value as an SSE event without a name.
func (s *stream) data(v any) error { return s.event("", v) }

// event sends a value as an SSE event; the name may be empty.
func (s *stream) event(name string, v any) error {
	data, err := encodeJSON(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteByte('\n')
	return s.write(b.Bytes())
}

// line sends a value as a line of JSON.
func (s *stream) line(v any) error {
	data, err := encodeJSON(v)
	if err != nil {
		return err
	}
	return s.write(data)
}

// write sends a piece at once. Its error wraps errSlowClient if the client did not
// take it in time.
func (s *stream) write(p []byte) error {
	if err := s.begin(); err != nil {
		return err
	}
	if _, err := s.w.Write(p); err != nil {
		return writeFailed(err)
	}
	return s.flush()
}

func (s *stream) flush() error {
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return writeFailed(err)
	}
	return nil
}

func writeFailed(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", errSlowClient, err)
	}
	return err
}

// recorder is a response writer that notes what was answered, and gives the client
// a time in which it must take each piece.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // 0: any time
	status  int           // 0: nothing was written yet
	bytes   int64
}

func newRecorder(w http.ResponseWriter, timeout time.Duration) *recorder {
	return &recorder{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout}
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.deadline()
	r.ResponseWriter.WriteHeader(status)
}

// Write sets the deadline anew.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	r.deadline()
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// FlushError sets the deadline anew.
func (r *recorder) FlushError() error {
	r.deadline()
	return r.control.Flush()
}

func (r *recorder) deadline() {
	if r.timeout > 0 { // a writer that knows no deadlines is a test's
		_ = r.control.SetWriteDeadline(time.Now().Add(r.timeout))
	}
}

// timedBody is a request's body that the client has to send without long pauses.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	timeout time.Duration
}

// Read sets the deadline anew, and takes it away at the end of the body: from then
// on the server reads to see whether the client is still there. After an error
// the deadline stays, so that what is left of the body is not waited for.
func (b *timedBody) Read(p []byte) (int, error) {
	b.deadline(time.Now().Add(b.timeout))
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.deadline(time.Time{})
	}
	return n, err
}

func (b *timedBody) deadline(t time.Time) {
	if b.timeout > 0 { // a writer that knows no deadlines is a test's
		_ = b.control.SetReadDeadline(t)
	}
}

// timed is the body of a request with its first deadline set, which also holds
// for a body that nobody reads.
func timed(r *http.Request, rec *recorder) io.ReadCloser {
	if r.Body == http.NoBody {
		return r.Body
	}
	b := &timedBody{r.Body, rec.control, rec.timeout}
	b.deadline(time.Now().Add(b.timeout))
	return b
}
