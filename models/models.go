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

// Errors that callers tell apart.
var (
	ErrContextFull  = errors.New("context is full")                           // Forward: no room for the rows
	ErrForeignCache = errors.New("the cache belongs to another architecture") // Forward, ComputeBytes
	ErrOutOfReach   = errors.New("the state of that position is gone")        // Truncate, Restore
)

// Params says how a model is loaded.
type Params struct {
	Backend *binding.Backend
	Place   Placement // over the backend's devices
	NoMmap  bool      // copy the weights instead of mapping the file

	ReadAhead ReadAhead

	// Fill, if not nil, makes the weights up instead of reading the file's: it is
	// called for each tensor with what puts bytes at an offset of its data.
	Fill func(t gguf.TensorInfo, put func(data []byte, off int64)) error

	// MaxClipPatches bounds what a ClipProjector takes as one item, since its
	// memory grows with them and its time with their square; 0 is its default.
	MaxClipPatches int

	// ImageRescale is the factor by which pictures are scaled before they are
	// cut into tiles; 0 leaves that to the file. A projector whose processor
	// knows no such factor refuses another value.
	ImageRescale float64

	// MTP holds layers for multi-token prediction that belong to the model; nil:
	// those of the model's own file, if it has any. Up to MTPDepths are loaded. It
	// stays in use until the model is closed. An architecture that has no such
	// layers refuses it.
	MTP       *File
	MTPDepths int
}

// Batch is what one sequence adds in a step: rows that follow what it holds.
type Batch struct {
	Seq       int       // which sequence of the cache
	Tokens    []int32   // one per row; ignored in media rows
	Media     []float32 // [n_embd] for each media row, in the order of MediaRows
	MediaRows []int32   // the rows that are media, ascending
	Outputs   []int32   // the rows of which something is wanted, ascending
}

// Outputs is where a step puts its results: for every output row of its
// batches, batch by batch, row by row. What is nil is not computed; one of them
// must be there.
type Outputs struct {
	Logits []float32 // [n_outputs * Config().Vocab]
	Hidden []float32 // [n_outputs * Config().Embd]: after the final norm, before the unembedding
}

// Model is a text decoder.
type Model interface {
	Config() Config
	// NewCache makes room for seqs sequences of size positions each. kv is the
	// type of keys and values; one that the model can not use is an error.
	NewCache(seqs, size int, kv binding.DType) (Cache, error)
	// Forward computes batches of different sequences behind the rows that c
	// holds of each, and adds them to c. The result for a sequence does not
	// depend on what else is in the step.
	//
	// After an error other than a wrong argument the sequences of the step must be Reset.
	Forward(c Cache, batches []Batch, out Outputs) error
	// ComputeBytes is the memory for intermediate results of the largest step:
	// rows rows of one sequence at the end of a full cache. Nothing is allocated.
	ComputeBytes(c Cache, rows int) (int64, error)
	WeightBytes() int64
	Close()
}

// Draft asks how a sequence may go on.
type Draft struct {
	Seq   int
	IDs   []int32 // all that is known: the rows that the cache holds, with anything for media, and the token behind them
	Guess []int32 // out: what may follow, none if nothing is known
}

// Drafter guesses tokens that a model can then check in one step. What it
// guesses never changes what is generated, only how many steps that takes.
type Drafter interface {
	// MaxDraft is the largest number of tokens that Draft can be asked for; 0 says that it can not guess.
	MaxDraft() int
	// Draft sets the Guess of every element, of up to n tokens.
	Draft(c Cache, ds []Draft, n int) error
	// Follow does what Draft would have to do first for rows that sequences have
	// got since. Called after each step of a long prompt it spares Draft the
	// wait, and the drafter from forgetting the prompt's beginning.
	Follow(c Cache, seqs ...int) error
}

// Config is what a program needs to know of any model.
type Config struct {
	Arch    string
	Embd    int // width of a row
	Vocab   int // logits per row: the usable vocabulary, without padding
	Context int // positions the model was made for
	Layers  int
}

// Cache is the state of a number of sequences, counted from 0, all empty at first.
type Cache interface {
	Seqs() int
	Size() int       // rows that each sequence has room for
	Pos(seq int) int // rows that it holds
	Reset(seq int)
	// Truncate forgets the rows from pos on. How far back that can go depends
	// on the architecture; further is ErrOutOfReach.
	Truncate(seq, pos int) error
	// Copy makes dst equal to src.
	Copy(dst, src int) error
	// Checkpoint saves what Truncate can not bring back, in host memory.
	Checkpoint(seq int) Checkpoint
	// Restore goes back to a checkpoint of the same sequence. Since then it may
	// have grown and been truncated, but not below the checkpoint: that, a
	// Reset and a Copy onto the sequence make it ErrOutOfReach.
	Restore(seq int, p Checkpoint) error
	// Adopt makes a checkpoint of another sequence, or of this one before it was
	// emptied, one of seq. The caller vouches that the first p.Pos() rows of
	// both are the same; fewer are ErrOutOfReach.
	Adopt(seq int, p Checkpoint) (Checkpoint, error)
	// Reach is the least position that Truncate can go back to.
	Reach(seq int) int
	// Save copies all that the sequence holds to host memory, and Load makes any
	// sequence of the same cache equal to that, bit by bit.
	Save(seq int) Checkpoint
	Load(seq int, saved Checkpoint) error
	// CheckpointBytes and SaveBytes are the host memory that Checkpoint and Save
	// would take now.
	CheckpointBytes(seq int) int64
	SaveBytes(seq int) int64
	Bytes() int64 // device memory
	// StateBytes is the part of Bytes that is no keys and values: the last inputs
	// of convolutions, which take the same at any size.
	StateBytes() int64
	Close()
}

// Checkpoint is a saved state.
type Checkpoint interface {
	Pos() int     // rows that the sequence held
	Bytes() int64 // host memory
}

// Projector turns media into rows for the text decoder. What not every
// architecture takes is in interfaces of its own: AudioProjector and, for
// video, PairProjector or ClipProjector.
//
// Rows are put into dst if its capacity is enough for them, whatever its length, and else
// into new memory; dst may be nil. Those of a minute of sound are 20 MB, whose pages take
// long to get from the system.
type Projector interface {
	Embd() int // width of a row; must be the decoder's
	// HasImage and HasAudio say which towers the file holds.
	HasImage() bool
	HasAudio() bool
	// ImageRows is the number of rows an image of w x h pixels becomes.
	ImageRows(w, h int) int
	// EncodeImage returns ImageRows(im.W, im.H) rows.
	EncodeImage(dst []float32, im *media.Image) ([]float32, error)
	Close()
}

// AudioProjector is a Projector with an audio tower, if HasAudio says so.
type AudioProjector interface {
	// AudioRows is the number of rows that n samples become.
	AudioRows(n int) int
	// EncodeAudio returns AudioRows(len(samples)) rows.
	//
	//	samples: mono, media.SampleRate a second, -1..1
	EncodeAudio(dst, samples []float32) ([]float32, error)
}

// PairProjector is a Projector whose image tower sees two frames of a video at
// once: for it a clip is a list of pictures of two frames each.
type PairProjector interface {
	// EncodePair returns ImageRows(a.W, a.H) rows for frame a and the next one,
	// b, of the same size.
	EncodePair(dst []float32, a, b *media.Image) ([]float32, error)
}

// ClipProjector is a Projector whose tower sees all frames of an item at once.
// An item is a whole clip or a chunk of it, as the layout has it.
type ClipProjector interface {
	// ClipRule says how the checkpoint wants clips to be sampled and laid out.
	ClipRule() media.ClipRule
	// FitFrame brings a frame of an item of n frames to the size that the tower sees.
	FitFrame(im *media.Image, layout media.ClipLayout, n int) (*media.Image, error)
	// CheckClip returns an error if an item of n fitted frames of w x h pixels is
	// more than the tower takes at once.
	CheckClip(n, w, h int) error
	// ClipRows is the number of rows that an item becomes, however many fitted
	// frames of w x h pixels it has.
	ClipRows(w, h int) int
	// EncodeClip returns ClipRows rows for the fitted frames of one item, which
	// all have the same size.
	EncodeClip(dst []float32, frames []*media.Image, layout media.ClipLayout) ([]float32, error)
}

type (
	openModel     func(*File, Params) (Model, error)
	openProjector func(*File, Params) (Projector, error)
)

var (
	archs      = map[string]openModel{}
	projectors = map[string]projectorKind{}
)

// Register makes an architecture known by the value of general.architecture.
// Called from init functions only.
func Register(arch string, open openModel) { archs[arch] = open }

// File is an opened GGUF file.
type File = gguf.File

// OpenFile maps a GGUF file, with all its parts if it is split.
func OpenFile(path string) (*File, error) { return gguf.Open(path) }

// Open loads a text model. f stays in use until the model is closed.
func Open(f *File, p Params) (Model, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
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
