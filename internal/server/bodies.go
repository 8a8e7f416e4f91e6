package server

import (
	"io"
	"net/http"
	"sync/atomic"
)

// bodiesAtOnce is how many bodies of the largest size the server holds at once.
const bodiesAtOnce = 16

// bodyRoom bounds the memory for the bodies of all requests at work: that of one
// is bounded by MaxBody, but the number of clients is not bounded.
type bodyRoom struct{ left atomic.Int64 }

// errBodyRoom refuses a body that finds no room beside the others.
var errBodyRoom = &Error{
	Status: http.StatusServiceUnavailable, Message: "the bodies of other requests fill the room there is for them: try again, or raise --max-body", RetryAfter: busyRetry,
}

// heldBody is a body that is kept in memory until its request has ended.
type heldBody struct {
	io.ReadCloser
	room *bodyRoom
	held int64
}

// hold counts what is read of a body.
func (b *bodyRoom) hold(body io.ReadCloser) *heldBody { return &heldBody{ReadCloser: body, room: b} }

// Read fails with errBodyRoom if there is no room for what it has read.
func (h *heldBody) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	h.held += int64(n)
	if h.room.left.Add(-int64(n)) < 0 {
		return n, errBodyRoom
	}
	return n, err
}

// release gives the room back, once nothing reads any more.
func (h *heldBody) release() {
	h.room.left.Add(h.held)
	h.held = 0
}

// leaveBody lets a refusal be sent before the rest of the body has come, which
// net/http else waits for, and ends the connection after it.
func leaveBody(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 does not wait
}
