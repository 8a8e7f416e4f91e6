package engine

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/chat"
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/internal/machine"
	"github.com/inkling-go/inkling/internal/token"
	"github.com/inkling-go/inkling/models"
)

// DefaultContext is the context length when Options names none: what the model
// allows, up to this.
const DefaultContext = devices.DefaultContext

// DefaultCacheRAM is the room for saved states when Options names none.
const DefaultCacheRAM = 2 << 30

// Options says which model to load and how.
type Options struct {
	Model  string // text GGUF
	MMProj string // projector GGUF; empty: the one beside the model, if there is exactly one; "off": none

	MTP   string // GGUF of layers for multi-token prediction; empty: the model's own, or the one beside it, if there is exactly one; "off": none
	Draft int    // tokens to guess ahead of each step: at most so many; 0: as many as pay, by MTP only; NoDraft: none
	NGram bool   // guess by what the text holds already, in place of MTP; without MTP a positive Draft implies it

	Threads int           // CPU threads; 0: one per physical core
	Context int           // positions; 0: DefaultContext
	Batch   int           // upper bound of UBatch, as other programs of the field have it; 0: 2048
	UBatch  int           // prompt rows in one graph; 0: 512, and Batch on GPUs that have room for them
	KV      binding.DType // type of keys and values in the cache
	NoMmap  bool
	Devices devices.Options // where to compute; zero: on the GPUs that are there, or the CPU

	Template string // chat template in Jinja in place of the file's; empty: the file's

	Parallel int   // sequences that are computed at once, each with room for Context positions; 0: 1
	Queue    int   // requests that may wait for one; 0: 64
	CacheRAM int64 // bytes of host memory for saved states of prompts, taken as they come; 0: DefaultCacheRAM, negative: none

	ImageRescale   float64 // factor for the size of pictures; 0: the model's own, which is none for the published ones
	MaxClipPatches int     // patches of a clip that a tower sees at once; 0: the projector's default
}

func (o *Options) setDefaults() error {
	for _, n := range []struct {
		name string
		v    *int
		def  int
	}{{"threads", &o.Threads, machine.Cores()}, {"batch-size", &o.Batch, 2048}, {"ubatch-size", &o.UBatch, 0}, {"parallel", &o.Parallel, 1}, {"queue", &o.Queue, 64}} {
		if *n.v < 0 {
			return fmt.Errorf("%s: %d is negative", n.name, *n.v)
		}
		if *n.v == 0 {
			*n.v = n.def
		}
	}
	if n := runtime.NumCPU(); o.Threads > n {
		return fmt.Errorf("threads: %d is more than the %d cores of this machine: ggml's threads wait for each other by spinning", o.Threads, n)
	}
	if o.Context < 0 {
		return fmt.Errorf("ctx-size: %d is negative", o.Context)
	}
	if !(o.ImageRescale >= 0) || math.IsInf(o.ImageRescale, 0) {
		return fmt.Errorf("image-rescale: %v, want a number above 0", o.ImageRescale)
	}
	if o.MaxClipPatches < 0 {
		return fmt.Errorf("max-clip-patches: %d is negative", o.MaxClipPatches)
	}
	if o.CacheRAM == 0 {
		o.CacheRAM = DefaultCacheRAM
	}
	return o.checkDraft()
}

// Engine is a loaded model. Its methods may be called from any goroutine.
type Engine struct {
	opt      Options
	text     *models.File
	mmproj   *models.File // nil without
	mtp      *models.File // nil without
	choice   *devices.Choice
	be       *binding.Backend
	rows     int // of a prompt in one graph
	rowsBusy int // likewise, while other sequences wait for their next tokens
	model    models.Model
	proj     models.Projector // nil without
	vocab    *token.Vocab
	longest  int // bytes of the longest token
	renderer chat.Renderer
	stops    map[int32]bool
	slots    map[int32]bool // placeholders of media
	never    []int32
	defaults Sampling
	steer    steering
	calls    callGrammars
	cache    models.Cache
	sched    *scheduler // the owner's
	mail     *mailbox
	stats    counters
	once     sync.Once
}

// Open loads a model. The context cancels nothing after Open has returned.
func Open(ctx context.Context, o Options) (_ *Engine, err error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	e := &Engine{opt: o, mail: newMailbox(), stops: map[int32]bool{}, slots: map[int32]bool{}}
	defer func() {
		if err != nil {
			e.release()
		}
	}()
	if e.text, err = models.OpenFile(o.Model); err != nil {
		return nil, err
	}
	if err := e.openMTP(); err != nil {
		return nil, err
	}
	if err := e.openBackend(); err != nil {
		return nil, err
	}
	params := models.Params{Backend: e.be, Place: e.choice.Place, NoMmap: o.NoMmap, MTP: e.mtp, MTPDepths: e.opt.depths(), ImageRescale: o.ImageRescale, MaxClipPatches: o.MaxClipPatches}
	if e.model, err = models.Open(e.text, params); err != nil {
		return nil, err
	}
	if err := e.openProjector(params); err != nil {
		return nil, err
	}
	if err := e.openTokens(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.openCache(); err != nil {
		return nil, err
	}
	go e.run()
	return e, nil
}

// openProjector loads the mmproj file that was named or lies beside the model.
func (e *Engine) openProjector(p models.Params) (err error) {
	path, err := e.projectorPath()
	if path == "" || err != nil {
		return err
	}
	p.Backend, p.Place = e.be.Parts()[0], models.Placement{} // towers are small: on the main device
	if e.mmproj, err = models.OpenFile(path); err != nil {
		return err
	}
	if err := models.CheckProjector(e.mmproj, e.text); err != nil {
		return err
	}
	if e.proj, err = models.OpenProjector(e.mmproj, p); err != nil {
		return err
	}
	if got, want := e.proj.Embd(), e.model.Config().Embd; got != want {
		return fmt.Errorf("%s: its rows have %d values, those of %s have %d: the two files are of different models", path, got, e.opt.Model, want)
	}
	return nil
}

func (e *Engine) openCache() (err error) {
	limit := e.model.Config().Context
	if e.opt.Context == 0 {
		e.opt.Context = min(limit, DefaultContext)
	}
	if e.opt.Context > limit {
		return fmt.Errorf("ctx-size: %d is more than the %d positions that %s was made for", e.opt.Context, limit, e.opt.Model)
	}
	if e.cache, err = e.model.NewCache(e.opt.Parallel, e.opt.Context, e.opt.KV); err != nil {
		return err
	}
	e.sched = newScheduler(e, e.cache)
	return e.stats.open(e)
}

// release frees what Open has got so far.
func (e *Engine) release() {
	if e.cache != nil {
		e.cache.Close()
	}
	if e.proj != nil {
		e.proj.Close()
	}
	if e.model != nil {
		e.model.Close()
	}
	if e.be != nil {
		e.be.Close()
	}
	for _, f := range []*models.File{e.text, e.mmproj, e.mtp} {
		if f != nil {
			f.Close()
		}
	}
}

// Config describes the loaded model.
func (e *Engine) Config() models.Config { return e.model.Config() }

// Context is the number of positions that a conversation has room for.
func (e *Engine) Context() int { return e.opt.Context }

// Defaults are the sampling settings that the model's file recommends.
func (e *Engine) Defaults() Sampling { return e.defaults }

// Vocab is the model's vocabulary.
func (e *Engine) Vocab() *token.Vocab { return e.vocab }

// Memory is what the engine holds, in bytes.
type Memory struct {
	Weights int64 // mapped from the files, or copied
	Cache   int64 // keys, values and convolution states at full context
	Compute int64 // intermediate results of the largest step
	Saved   int64 // states kept on the host for prompts to come
}

// Memory measures; it runs on the owner's goroutine.
func (e *Engine) Memory(ctx context.Context) (m Memory, err error) {
	err = e.do(ctx, func() (err error) {
		m, err = e.memory()
		return err
	})
	return m, err
}

func (e *Engine) memory() (Memory, error) {
	m := Memory{Weights: e.model.WeightBytes(), Cache: e.cache.Bytes(), Saved: e.sched.bytes()}
	for _, rows := range []int{1, e.rows} { // their graphs are kept side by side
		n, err := e.model.ComputeBytes(e.cache, rows)
		if err != nil {
			return Memory{}, err
		}
		m.Compute += n
	}
	return m, nil
}

// readSampling takes the defaults from general.sampling.*, and from the
// conventions of the field where the file is silent.
func readSampling(f *models.File) (Sampling, error) {
	s := DefaultSampling()
	for _, k := range []struct {
		key string
		v   *float32
	}{
		{"temp", &s.Temperature},
		{"top_p", &s.TopP},
		{"min_p", &s.MinP},
		{"penalty_repeat", &s.RepeatPenalty},
	} {
		v, err := f.FloatOr("general.sampling."+k.key, float64(*k.v))
		if err != nil {
			return s, err
		}
		*k.v = float32(v)
	}
	k, err := f.UintOr("general.sampling.top_k", uint64(s.TopK))
	if err != nil {
		return s, err
	}
	s.TopK = int(min(k, math.MaxInt32))
	if err := s.Validate(); err != nil {
		return s, fmt.Errorf("%s: general.sampling: %w", f.Path(), err)
	}
	return s, nil
}
