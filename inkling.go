// Package inkling runs Inkling and Kimi-K2.5 models from GGUF files in a Go
// program: text, pictures, sound and video in, text and tool calls out.
//
//	s, err := inkling.Open(ctx, "inkling-small-Q4_K_M.gguf", inkling.Config{})
//	if err != nil { … }
//	defer s.Close()
//	question := inkling.User(inkling.Text("What is in the picture?"), inkling.ImageFile("photo.jpg"))
//	for d, err := range s.Generate(ctx, []inkling.Message{question}, inkling.Options{}) {
//		if err != nil { … }
//		fmt.Print(d.Text)
//	}
//
// The package needs cgo. Built without CGO_CFLAGS and CGO_CXXFLAGS of "-O3
// -march=native" (or what fits the CPUs it will run on) it is many times slower;
// [Warning] says so.
package inkling

import (
	"context"
	"errors"
	"fmt"

	"github.com/inkling-go/inkling/internal/engine"
	_ "github.com/inkling-go/inkling/models/inkling" // the architectures that Open knows
	_ "github.com/inkling-go/inkling/models/kimik25"
)

// Errors that callers tell apart with errors.Is.
var (
	ErrClosed      = engine.ErrClosed      // the session is closed
	ErrBusy        = engine.ErrBusy        // more requests wait than Config.Queue
	ErrContextFull = engine.ErrContextFull // the prompt does not fit Config.Context
	ErrNoProjector = engine.ErrNoProjector // media, but no mmproj file
)

// Config says how a model is loaded. The zero value is sound.
type Config struct {
	MMProj   string // projector GGUF; empty: the one beside the model, if there is exactly one; "off": none
	Context  int    // positions of each conversation; 0: 4096, or fewer if the model allows fewer
	Parallel int    // conversations computed at once; 0: 1
	Queue    int    // requests that may wait for a place; 0: 64
	Threads  int    // CPU threads; 0: one per physical core
	KV       string // type of keys and values: f32, f16 (the default), bf16 or q8_0
	NoMmap   bool   // copy the weights into memory instead of mapping the file
}

// Session is a loaded model. Its methods may be called from any goroutine.
// Conversations that begin alike share what was computed for their beginnings.
type Session struct {
	eng *engine.Engine
}

// Open loads the model of a GGUF file; of a split file, its first part. The
// context ends the loading, nothing later.
//
// An error names the file and what is wrong: a file that is missing, broken or of
// another architecture, a projector of another model, a context longer than the
// model's, memory that is not there.
func Open(ctx context.Context, model string, c Config) (*Session, error) {
	kv, err := engine.ParseKV(c.KV)
	if err != nil {
		return nil, fmt.Errorf("Config.KV: %w", err)
	}
	eng, err := engine.Open(ctx, engine.Options{
		Model: model, MMProj: c.MMProj, Context: c.Context, Parallel: c.Parallel, Queue: c.Queue,
		Threads: c.Threads, KV: kv, NoMmap: c.NoMmap,
	})
	if err != nil {
		return nil, err
	}
	return &Session{eng}, nil
}

// Close frees the model. Requests that run end with [ErrClosed], as later ones do.
func (s *Session) Close() { s.eng.Close() }

// Context is the number of positions that a conversation has room for: tokens,
// and the rows that media become.
func (s *Session) Context() int { return s.eng.Context() }

// Embed returns a vector for each text: the mean over its tokens of the last hidden
// state after the final norm, scaled to length 1.
//
//	res: [len(texts)][width of the model]
//
// Errors are those of [Session.Generate], and one for no texts.
func (s *Session) Embed(ctx context.Context, texts ...string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, errors.New("no texts to embed")
	}
	vectors, _, err := s.eng.Embed(ctx, texts)
	return vectors, err
}

// Warning is empty if the program was built with SIMD kernels, else a line that
// says what to do.
func Warning() string { return engine.Warning() }
