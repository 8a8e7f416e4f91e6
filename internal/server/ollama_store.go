package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/inkling-go/inkling/internal/store"
)

// This file is Ollama's routes over the store, but for /api/create.

// theStore returns the store, or the error that there is none.
func (s *Server) theStore() (*store.Store, error) {
	if s.opt.Store == nil {
		return nil, &Error{Status: http.StatusNotImplemented, Message: "the server has no store of models"}
	}
	return s.opt.Store, nil
}

// storeError finds out whose fault an error of the store is.
func storeError(name string, err error) error {
	var bad *store.NameError
	var syntax *store.SyntaxError
	var quant *store.QuantError
	var space *store.SpaceError
	var tooLong *http.MaxBytesError
	status := http.StatusInternalServerError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotFound):
		return modelNotFound(name, err)
	case errors.As(err, &bad), errors.As(err, &syntax), errors.As(err, &quant), errors.Is(err, store.ErrCheckpoint),
		errors.Is(err, store.ErrDigest), errors.Is(err, store.ErrNoBlob):
		status = http.StatusBadRequest
	case errors.Is(err, store.ErrNoAccess):
		status = http.StatusForbidden
	case errors.As(err, &space), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		status = http.StatusInsufficientStorage
	case errors.Is(err, context.Canceled), errors.As(err, &tooLong):
		return err
	}
	return &Error{Status: status, Message: err.Error(), cause: err}
}

// ollamaTask is the part of a request for work that takes its time.
type ollamaTask struct {
	ollamaName
	Stream *bool `json:"stream"` // true if absent
}

// run does the work and writes its progress, one line for each report, or only
// its end.
func (t *ollamaTask) run(w http.ResponseWriter, r *http.Request, work func(context.Context, func(store.Progress)) error) error {
	success := store.Progress{Status: "success"}
	if t.Stream != nil && !*t.Stream {
		if err := work(r.Context(), nil); err != nil {
			return storeError(t.name(), err)
		}
		writeJSON(w, http.StatusOK, success)
		return nil
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	out := newStream(w, typeNDJSON)
	err := work(ctx, func(p store.Progress) {
		if err := out.line(p); err != nil {
			cancel(err)
		}
	})
	if err != nil {
		return out.fail(ollama, storeError(t.name(), err))
	}
	return out.line(success)
}

// ollamaPull is POST /api/pull.
func (s *Server) ollamaPull(w http.ResponseWriter, r *http.Request) error {
	var req ollamaTask
	if err := readJSON(r, &req); err != nil {
		return err
	}
	st, err := s.theStore()
	if err != nil {
		return err
	}
	name, err := store.ParseName(req.name())
	if err != nil {
		return storeError(req.name(), err)
	}
	if !name.OnHub() {
		return &Error{Status: http.StatusBadRequest, Param: "model", Message: fmt.Sprintf(
			"%q is no repository of the Hugging Face Hub, hf.co/ORG/REPO[:QUANT]; Ollama's registry is not asked", req.name())}
	}
	return req.run(w, r, func(ctx context.Context, progress func(store.Progress)) error {
		_, err := st.Pull(ctx, req.name(), progress)
		return err
	})
}

// ollamaPush is POST /api/push, which there is nothing to do for.
func (s *Server) ollamaPush(http.ResponseWriter, *http.Request) error {
	return &Error{Status: http.StatusNotImplemented, Message: "models are not pushed: there is no registry to push to"}
}

// ollamaCopy is POST /api/copy.
func (s *Server) ollamaCopy(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
	}
	if err := readJSON(r, &req); err != nil {
		return err
	}
	st, err := s.theStore()
	if err != nil {
		return err
	}
	switch "" {
	case req.Source:
		return invalid("source", "is missing")
	case req.Destination:
		return invalid("destination", "is missing")
	}
	if err := st.Copy(req.Source, req.Destination); err != nil {
		return storeError(req.Source, err)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// ollamaDelete is DELETE /api/delete. The model leaves memory once its requests
// are done.
func (s *Server) ollamaDelete(w http.ResponseWriter, r *http.Request) error {
	var req ollamaName
	if err := readJSON(r, &req); err != nil {
		return err
	}
	st, err := s.theStore()
	if err != nil {
		return err
	}
	if req.name() == "" { // never the one model that need not be named
		return invalid("model", "is missing")
	}
	if m, err := s.catalog.resolve(req.name()); err == nil && m.Stored == nil {
		return &Error{Status: http.StatusBadRequest, Param: "model", Message: fmt.Sprintf("%q is a file and not in the store", req.name())}
	}
	name, err := store.ParseName(req.name())
	if err != nil {
		return storeError(req.name(), err)
	}
	if err := st.Delete(req.name()); err != nil {
		return storeError(req.name(), err)
	}
	s.pool.unload(name.String())
	w.WriteHeader(http.StatusOK)
	return nil
}

// ollamaHasBlob is HEAD /api/blobs/{digest}.
func (s *Server) ollamaHasBlob(w http.ResponseWriter, r *http.Request) error {
	_, digest, there, err := s.blobOf(r)
	if err != nil {
		return err
	}
	if !there {
		return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("blob %q not found", digest)}
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// ollamaPutBlob is POST /api/blobs/{digest}.
func (s *Server) ollamaPutBlob(w http.ResponseWriter, r *http.Request) error {
	st, digest, there, err := s.blobOf(r)
	if err != nil {
		return err
	}
	if there {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	if err := st.PutBlob(r.Context(), digest, r.Body); err != nil {
		return storeError(digest, err)
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

// blobOf reads the digest, which may be written as the name of a blob's file, and
// whether the store has that blob.
func (s *Server) blobOf(r *http.Request) (st *store.Store, digest string, there bool, err error) {
	if st, err = s.theStore(); err != nil {
		return nil, "", false, err
	}
	digest = strings.Replace(r.PathValue("digest"), "sha256-", "sha256:", 1)
	if there, err = st.HasBlob(digest); err != nil {
		return nil, "", false, invalid("digest", "%w", err)
	}
	return st, digest, there, nil
}
