// Package models turns GGUF files into computing models. An architecture is a
// folder of its own that registers itself; a program names the architectures
// it wants by blank imports.
package models

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/internal/media"
)

// UnsupportedError reports a sound file that this program can not run.
type UnsupportedError struct {
	File string
	Msg  string
}

func (e *UnsupportedError) Error() string { return e.File + ": " + e.Msg }

// ErrContextFull is returned by Forward when the cache has no room for the rows.
var ErrContextFull = errors.New("context is full")

// Params says how a model is loaded.
type Params struct {
	Backend *binding.Backend
	NoMmap  bool // copy the weights instead of mapping the file
}

// Batch is one step of one sequence: rows that follow what its cache holds.
type Batch struct {
	Tokens    []int32   // one per row; ignored in media rows
	Media     []float32 // [n_embd] for each media row, in the order of MediaRows
	MediaRows []int32   // the rows that are media, ascending
	Outputs   []int32   // the rows whose logits are wanted, ascending
}

// Model is a text decoder.
type Model interface {
	Config() Config
	// NewCache makes room for n_ctx positions of one sequence. kv is the type
	// of keys and values; a type that the model can not use is an error.
	NewCache(nCtx int, kv binding.DType) (Cache, error)
	// Forward computes b behind the rows that c holds and adds them to c.
	//
	//	logits: [n_outputs * Config().Vocab], row by row
	//
	// After an error c must be Reset.
	Forward(b *Batch, c Cache, logits []float32) error
	Close()
}

// Config is what a program needs to know of any model.
type Config struct {
	Arch    string
	Embd    int // width of a row
	Vocab   int // logits per row: the usable vocabulary, without padding
	Context int // positions the model was made for
	Layers  int
}

// Cache is the state of one sequence.
type Cache interface {
	Pos() int     // rows held
	Size() int    // rows it has room for
	Bytes() int64 // device memory
	Reset()
	Close()
}

// Projector turns media into rows for the text decoder.
type Projector interface {
	Embd() int // width of a row; must be the decoder's
	// HasImage and HasAudio say which towers the file holds.
	HasImage() bool
	HasAudio() bool
	// ImageRows is the number of rows an image of w x h pixels becomes.
	ImageRows(w, h int) int
	// EncodeImage returns ImageRows(im.W, im.H) rows.
	EncodeImage(im *media.Image) ([]float32, error)
	Close()
}

type (
	openModel     func(*File, Params) (Model, error)
	openProjector func(*File, Params) (Projector, error)
)

var (
	archs      = map[string]openModel{}
	projectors = map[string]openProjector{}
)

// Register makes an architecture known by the value of general.architecture.
// Called from init functions only.
func Register(arch string, open openModel) { archs[arch] = open }

// RegisterProjector makes a projector known by its clip.*.projector_type.
func RegisterProjector(kind string, open openProjector) { projectors[kind] = open }

// File is an opened GGUF file.
type File = gguf.File

// OpenFile maps a GGUF file, with all its parts if it is split.
func OpenFile(path string) (*File, error) { return gguf.Open(path) }

// Open loads a text model. f stays in use until the model is closed.
func Open(f *File, p Params) (Model, error) {
	arch, err := f.Str("general.architecture")
	if err != nil {
		return nil, err
	}
	open, ok := archs[arch]
	switch {
	case arch == "clip":
		return nil, &UnsupportedError{f.Path(), "is a projector (mmproj), not a text model; name the text file and give this one by --mmproj"}
	case !ok:
		return nil, &UnsupportedError{f.Path(), fmt.Sprintf("architecture %q is not supported (supported: %v)", arch, slices.Sorted(maps.Keys(archs)))}
	}
	return open(f, p)
}

// OpenProjector loads the media towers of an mmproj file.
func OpenProjector(f *File, p Params) (Projector, error) {
	arch, err := f.Str("general.architecture")
	if err != nil {
		return nil, err
	}
	if arch != "clip" {
		return nil, &UnsupportedError{f.Path(), fmt.Sprintf("is not a projector: general.architecture is %q, want \"clip\"", arch)}
	}
	for _, key := range []string{"clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type"} {
		kind, err := f.StrOr(key, "")
		if err != nil {
			return nil, err
		}
		if kind == "" {
			continue
		}
		if open, ok := projectors[kind]; ok {
			return open(f, p)
		}
		return nil, &UnsupportedError{f.Path(), fmt.Sprintf("%s %q is not supported (supported: %v)", key, kind, slices.Sorted(maps.Keys(projectors)))}
	}
	return nil, &UnsupportedError{f.Path(), "names no projector type (clip.vision.projector_type)"}
}
