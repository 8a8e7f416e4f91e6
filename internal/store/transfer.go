package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var errStalled = errors.New("the connection stands still")

// ranged makes one request for what is missing of a part and writes what comes.
func (d *download) ranged(ctx context.Context, i int) error {
	d.mu.Lock()
	start := int64(i)*d.j.Part + d.j.Done[i]
	end, etag := int64(i)*d.j.Part+d.j.length(i), d.j.ETag
	d.mu.Unlock()
	if start == end {
		return nil
	}
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", start, end-1)}}
	if etag != "" && !strings.HasPrefix(etag, "W/") { // a weak one cannot stand there
		header.Set("If-Range", etag)
	}
	return d.request(ctx, header, func(resp *http.Response, body io.Reader) error {
		if err := d.checkRange(resp, start); err != nil {
			return err
		}
		return d.write(body, start, end, func(n int64) { d.advance(i, n) })
	})
}

// checkRange checks that a response is the range that was asked for, of the file
// that the range before was of.
func (d *download) checkRange(resp *http.Response, start int64) error {
	got := resp.Header.Get("ETag")
	d.mu.Lock()
	known := d.j.ETag
	if known == "" {
		d.j.ETag = got
	}
	d.mu.Unlock()
	changed := known != "" && got != "" && known != got
	switch resp.StatusCode {
	case http.StatusPartialContent:
		if changed {
			return errChanged
		}
		return d.checkContentRange(resp.Header.Get("Content-Range"), start)
	case http.StatusOK:
		if changed {
			return errChanged
		}
		return errNoRange
	case http.StatusRequestedRangeNotSatisfiable:
		return errChanged
	}
	return d.hub.statusError(d.name, d.file.path, resp)
}

// checkContentRange reads "bytes START-END/SIZE".
func (d *download) checkContentRange(text string, start int64) error {
	bounds, size, _ := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	first, _, _ := strings.Cut(bounds, "-")
	if first != strconv.FormatInt(start, 10) {
		return &transientError{err: fmt.Errorf("%s: the server sends the range %q, want it from byte %d", d.file.path, text, start)}
	}
	if size != "*" && size != strconv.FormatInt(d.file.size, 10) {
		return &transientError{err: fmt.Errorf("%s: the server's file has %s bytes, want %d as in the list of files", d.file.path, size, d.file.size)}
	}
	return nil
}

// unranged makes one request for the whole file.
func (d *download) unranged(ctx context.Context) error {
	d.reach(0)
	return d.request(ctx, nil, func(resp *http.Response, body io.Reader) error {
		if resp.StatusCode != http.StatusOK {
			return d.hub.statusError(d.name, d.file.path, resp)
		}
		if n := resp.ContentLength; n >= 0 && n != d.file.size {
			return &transientError{err: fmt.Errorf("%s: the server's file has %d bytes, want %d as in the list of files", d.file.path, n, d.file.size)}
		}
		var n int64
		return d.write(body, 0, d.file.size, func(more int64) {
			n += more
			d.reach(n)
		})
	})
}

// request makes one request and gives its response to use. A connection that
// stands still is given up.
func (d *download) request(ctx context.Context, header http.Header, use func(*http.Response, io.Reader) error) error {
	rctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := d.hub.retry.stall
	timer := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer timer.Stop()
	req, err := http.NewRequestWithContext(rctx, http.MethodGet, d.hub.fileURL(d.name, d.file.path), nil)
	if err != nil {
		return err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	// What the transport would unpack has another size and other ranges.
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := d.hub.client.Do(req)
	if err != nil {
		return d.broken(rctx, err)
	}
	defer resp.Body.Close()
	err = use(resp, readerFunc(func(p []byte) (int, error) {
		n, err := resp.Body.Read(p)
		timer.Reset(stall)
		return n, err
	}))
	var read *readError
	if errors.As(err, &read) {
		return d.broken(rctx, read.err)
	}
	return err
}

// broken is the error for a connection that was lost.
func (d *download) broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
		if !errors.Is(cause, errStalled) {
			return cause
		}
	}
	return &transientError{err: fmt.Errorf("%s: %w", d.file.path, err)}
}

// write puts a body at its place in the file. It must have exactly the bytes from
// start to end; each step is noted.
func (d *download) write(body io.Reader, start, end int64, note func(int64)) error {
	buf := make([]byte, 128<<10)
	for at := start; at < end; {
		n, err := body.Read(buf[:min(int64(len(buf)), end-at)])
		if n > 0 {
			if _, err := d.partial.WriteAt(buf[:n], at); err != nil {
				return fmt.Errorf("%s: %w", d.file.path, err)
			}
			at += int64(n)
			note(int64(n))
		}
		if err != nil && at < end {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return &readError{err}
		}
	}
	return nil
}

// readError tells a lost connection from a disk that is full.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
