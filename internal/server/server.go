package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/store"
)

// Options say what to serve and how.
type Options struct {
	Models []*Model       // besides those of the store
	Store  *store.Store   // nil: none
	Engine engine.Options // of every model; the files are the model's

	KeepAlive time.Duration // how long an idle model stays; 0: not at all; below 0: forever
	MaxLoaded int           // models in memory at once; 0: 1

	MaxBody       int64         // bytes of a request; 0: 64 MiB
	ClientTimeout time.Duration // in which a client must send a piece of its request, or take one of the answer; 0: 30 s
	Media         MediaPolicy
	Limits        engine.MediaLimits

	APIKeys      []string // one of which a request must have; none: no key is asked for
	AllowOrigins []string // of web pages, besides those of this machine; "*": all
	Loopback     bool     // the address is this machine's own, and requests must name it by such a name

	Page    http.Handler // answers browsers at /
	Version string
	Log     *slog.Logger // nil: slog's default
}

func (o *Options) setDefaults() {
	if o.MaxLoaded == 0 {
		o.MaxLoaded = 1
	}
	if o.MaxBody == 0 {
		o.MaxBody = 64 << 20
	}
	if o.ClientTimeout == 0 {
		o.ClientTimeout = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

// Server is the handler of all routes and what is behind them.
type Server struct {
	opt     Options
	catalog catalog
	pool    *pool
	media   *mediaSource
	formats formats
	kept    keptResponses
	bodies  bodyRoom
	metrics *metrics
	mux     *http.ServeMux
	log     *slog.Logger

	ctx      context.Context // ends when running requests have to
	cancel   context.CancelCauseFunc
	draining atomic.Bool
}

// New makes a server. Nothing is loaded before a request wants it.
func New(o Options) (*Server, error) {
	o.setDefaults()
	m, err := newMediaSource(o.Media)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opt: o, catalog: catalog{o.Models, o.Store}, media: m, metrics: newMetrics(), mux: http.NewServeMux(), log: o.Log,
		pool: newPool(o.Engine, o.KeepAlive, o.MaxLoaded, o.Log),
	}
	s.bodies.left.Store(bodiesAtOnce * o.MaxBody)
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.register(slices.Concat(s.opsRoutes(), s.openAIRoutes(), s.responsesRoutes(), s.ollamaRoutes(), s.anthropicRoutes()))
	s.mux.HandleFunc("/", s.noRoute)
	return s, nil
}

// Drain makes the server refuse new requests; those at work go on.
func (s *Server) Drain() { s.draining.Store(true) }

// Close ends what is at work and unloads all models.
func (s *Server) Close() {
	s.Drain()
	s.cancel(errDraining)
	s.pool.close()
	s.media.close()
}

// handlerFunc answers a request. An error that it returns before it has written
// anything is written in the dialect of its route.
type handlerFunc func(w http.ResponseWriter, r *http.Request) error

// route is a path with a method; GET takes HEAD too.
type route struct {
	method  string
	path    string // in the form of http.ServeMux, without a method
	dialect dialect
	open    bool // for everybody, without a key, and while the server drains
	large   bool // its body is a file, of any size
	handle  handlerFunc
}

// dialectFor is the dialect of the answer to a request: Anthropic's clients ask for
// models by OpenAI's path.
func (rt *route) dialectFor(r *http.Request) dialect {
	if rt.dialect == openAI && r.Header.Get(anthropicHeader) != "" {
		return anthropic
	}
	return rt.dialect
}

// register enters routes by path, so that a wrong method is an error in the
// dialect of the path.
func (s *Server) register(routes []route) {
	byPath := map[string][]route{}
	for _, r := range routes {
		byPath[r.path] = append(byPath[r.path], r)
	}
	for path, of := range byPath {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			i := slices.IndexFunc(of, func(o route) bool {
				return o.method == r.Method || o.method == http.MethodGet && r.Method == http.MethodHead
			})
			if i >= 0 {
				s.serve(w, r, of[i])
				return
			}
			var allow []string
			for _, o := range of {
				allow = append(allow, o.method)
			}
			w.Header().Set("Allow", strings.Join(allow, ", "))
			s.serve(w, r, route{path: path, dialect: of[0].dialect, handle: func(http.ResponseWriter, *http.Request) error {
				return &Error{Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s %s: want %s", r.Method, r.URL.Path, strings.Join(allow, " or "))}
			}})
		})
	}
}

// noRoute answers requests for a path that is none.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, route{path: "other", dialect: dialectOf(r.URL.Path), handle: func(http.ResponseWriter, *http.Request) error {
		return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("%s: no such route", r.URL.Path)}
	}})
}

// dialectOf guesses what a client speaks by a path that is no route.
func dialectOf(path string) dialect {
	switch {
	case strings.HasPrefix(path, "/api/"):
		return ollama
	case strings.HasPrefix(path, "/v1/messages"):
		return anthropic
	}
	return openAI
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := newRecorder(w, s.opt.ClientTimeout)
	if s.crossOrigin(rec, r) {
		return
	}
	s.mux.ServeHTTP(rec, r)
}

// serve runs a handler with everything around it: the key, limits, an end when the
// server ends, panics, errors, counters and a line in the log.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt route) {
	rec := w.(*recorder)
	start := time.Now()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(errDraining) })()
	r = r.WithContext(ctx)
	r.Body = timed(r, rec)
	if !rt.large {
		held := s.bodies.hold(http.MaxBytesReader(rec, r.Body, s.opt.MaxBody))
		defer held.release()
		r.Body = held
	}
	id := "req_" + rand.Text()
	rec.Header().Set("X-Request-Id", id) // where OpenAI's clients look

	err := s.call(rec, r, rt)
	status, begun := rec.status, rec.status != 0
	if err != nil {
		status = asError(err).Status
		if !begun && status != statusClientClosed {
			if errors.Is(err, errBodyRoom) {
				leaveBody(rec)
			}
			rt.dialectFor(r).writeError(rec, err)
		}
	}
	took := time.Since(start)
	s.metrics.request(rt.path, status, took)
	s.logRequest(r, id, status, took, err)
	if begun && errors.Is(err, errPanic) {
		panic(http.ErrAbortHandler) // an answer that breaks off must not look whole
	}
}

func (s *Server) call(w http.ResponseWriter, r *http.Request, rt route) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(r.URL.Path, p)
		}
	}()
	if !rt.open {
		if err := s.authorize(r); err != nil {
			return err
		}
		if s.draining.Load() {
			return errDraining
		}
	}
	return rt.handle(w, r)
}

// panicked logs a panic, and is the error that the client gets. It is called while
// the panic is recovered from.
func (s *Server) panicked(where string, p any) error {
	s.log.Error("panic", "in", where, "panic", p, "stack", string(debug.Stack()))
	return &Error{Status: http.StatusInternalServerError, Message: "internal error; the server's log says more", cause: errPanic}
}

func (s *Server) logRequest(r *http.Request, id string, status int, took time.Duration, err error) {
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", status),
		slog.Duration("took", took), slog.String("from", r.RemoteAddr), slog.String("id", id),
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
		var fault *engine.PanicError
		if errors.As(err, &fault) {
			attrs = append(attrs, slog.String("stack", string(fault.Stack)))
		}
	}
	s.log.LogAttrs(r.Context(), level, "request", attrs...)
}
