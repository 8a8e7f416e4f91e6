package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/media"
)

// Codes of errors that clients branch on, in OpenAI's words.
const (
	codeContextLength = "context_length_exceeded"
	codeModelNotFound = "model_not_found"
	codeInvalidKey    = "invalid_api_key"
	codeBusy          = "rate_limit_exceeded"
)

// Error is a request that failed, in no protocol's words.
type Error struct {
	Status  int    // of HTTP
	Code    string // one of the codes above, or empty
	Param   string // the field of the request that is wrong, "messages[2].content[0].image_url.url", or empty
	Message string // for people; without Param

	RetryAfter time.Duration // when to try again; 0: not said
	cause      error
}

func (e *Error) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

// Unwrap returns what made the request fail, if it was an error.
func (e *Error) Unwrap() error { return e.cause }

// invalid says what is wrong with a field of the request.
func invalid(param, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Status: http.StatusBadRequest, Param: param, Message: err.Error(), cause: errors.Unwrap(err)}
}

// unsupported refuses a field that is fine and not for us.
func unsupported(param, format string, args ...any) *Error {
	e := invalid(param, format, args...)
	e.Code = "unsupported_parameter"
	return e
}

// busyRetry is when a client that found the queue full may try again.
const busyRetry = time.Second

// statusClientClosed is nginx's status for a client that has gone; nobody reads it
// but the log.
const statusClientClosed = 499

// errDraining ends what runs when the drain's time is over.
var errDraining = errors.New("the server is shutting down")

// errPanic is a fault of this program.
var errPanic = errors.New("panic")

// errSlowClient ends a request whose client takes too long to read.
var errSlowClient = errors.New("the client reads too slowly")

// asError finds out whose fault an error is.
func asError(err error) *Error {
	var medium *engine.MediumError
	if errors.As(err, &medium) {
		e := *asError(medium.Err)
		e.Param = cmp.Or(e.Param, medium.Field)
		return &e
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	e := &Error{Status: http.StatusInternalServerError, Message: err.Error(), cause: err}
	var bad *engine.RequestError
	var tooLong *http.MaxBytesError
	switch {
	case errors.Is(err, engine.ErrContextFull):
		e.Status, e.Code, e.Param = http.StatusBadRequest, codeContextLength, "messages"
	case errors.As(err, &bad):
		e.Status, e.Param, e.Message = http.StatusBadRequest, bad.Param, bad.Err.Error()
	case errors.Is(err, engine.ErrNoProjector), isMediaError(err):
		e.Status = http.StatusBadRequest
	case errors.Is(err, engine.ErrBusy):
		e.Status, e.Code, e.RetryAfter = http.StatusTooManyRequests, codeBusy, busyRetry
	case errors.Is(err, errDraining), errors.Is(err, engine.ErrClosed), errors.Is(err, engine.ErrOutOfMemory):
		e.Status, e.RetryAfter = http.StatusServiceUnavailable, busyRetry
	case errors.As(err, &tooLong):
		e.Status = http.StatusRequestEntityTooLarge
		e.Message = fmt.Sprintf("the body has more than %d bytes: --max-body allows more", tooLong.Limit)
	case errors.Is(err, context.Canceled), errors.Is(err, errSlowClient):
		e.Status = statusClientClosed
	}
	return e
}

// isMediaError reports whether a medium of the request could not be decoded.
func isMediaError(err error) bool {
	var format *media.FormatError
	var foreign *media.UnsupportedError
	var limit *media.LimitError
	return errors.As(err, &format) || errors.As(err, &foreign) || errors.As(err, &limit)
}

// dialect is the protocol whose shapes a route speaks.
type dialect int

const (
	openAI dialect = iota
	ollama
	anthropic
)

// body is an error as the protocol's clients read it.
func (d dialect) body(e *Error) any {
	switch d {
	case ollama:
		return map[string]string{"error": e.Error()}
	case anthropic:
		return map[string]any{"type": "error", "error": map[string]string{"type": anthropicType(e.Status), "message": e.Error()}}
	}
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	own := detail{Message: e.Error(), Type: openAIType(e.Status)}
	if e.Param != "" {
		own.Param = &e.Param
	}
	if e.Code != "" {
		own.Code = &e.Code
	}
	return map[string]any{"error": own}
}

func openAIType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

func anthropicType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusServiceUnavailable:
		return "overloaded_error"
	case status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}

// writeError answers with an error, unless the answer has begun.
func (d dialect) writeError(w http.ResponseWriter, err error) {
	e := asError(err)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	writeJSON(w, e.Status, d.body(e))
}
