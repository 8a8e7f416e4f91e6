package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inkling-go/inkling/internal/engine"
)

// Forever is a keep-alive that never ends.
const Forever time.Duration = -1

// pool holds the loaded models. One is loaded by the first request for it, stays
// for its keep-alive after the last, and gives way to another, if it is idle,
// when there are too many.
type pool struct {
	open      func(context.Context, engine.Options) (*engine.Engine, error)
	opt       engine.Options // of every model
	keepAlive time.Duration
	max       int
	log       *slog.Logger

	mu      sync.Mutex
	byName  map[string]*loaded
	all     map[*loaded]bool // with those that are on their way out
	changed chan struct{}    // closed and replaced when a model may have become idle, or is gone
	closed  bool
}

// loaded is a model in memory, or on its way there.
type loaded struct {
	*Model
	eng    *engine.Engine
	err    error
	ready  chan struct{} // closed once eng or err is there
	closed chan struct{} // closed once eng has given its memory back

	// The rest is guarded by the pool's mutex.
	files     []fileState
	loading   bool
	users     int
	gone      bool // no longer in byName, and closed when its last user leaves
	keepAlive time.Duration
	used      time.Time // when it became idle
	expires   time.Time // while idle; zero: never
	timer     *time.Timer
}

func newPool(opt engine.Options, keepAlive time.Duration, limit int, log *slog.Logger) *pool {
	return &pool{
		open: engine.Open, opt: opt, keepAlive: keepAlive, max: max(limit, 1), log: log,
		byName: map[string]*loaded{}, all: map[*loaded]bool{}, changed: make(chan struct{}),
	}
}

// acquire lends the model, after loading it if it is not there or its files have
// changed. The caller gives it back by release. It waits while as many models as
// there may be are all busy.
func (p *pool) acquire(ctx context.Context, m *Model) (*loaded, error) {
	for {
		l, wait, err := p.take(m)
		switch {
		case err != nil:
			return nil, err
		case l == nil:
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		select {
		case <-l.ready:
		case <-ctx.Done():
			p.release(l, nil)
			return nil, context.Cause(ctx)
		}
		if l.err != nil {
			p.release(l, nil)
			return nil, l.err
		}
		return l, nil
	}
}

// take finds or begins to load a model, or returns what to wait for until there
// may be room for it.
func (p *pool) take(m *Model) (*loaded, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errDraining
	}
	l := p.byName[m.Name]
	if l != nil && !l.loading && (changed(l.files) || l.Path != m.Path || l.MMProj != m.MMProj) {
		p.log.Warn("the files of a model have changed: it is loaded again", "model", m.Name)
		p.drop(l)
		l = nil
	}
	if l == nil {
		if len(p.all) >= p.max {
			p.makeRoom()
			return nil, p.changed, nil
		}
		l = &loaded{Model: m, ready: make(chan struct{}), closed: make(chan struct{}), loading: true, keepAlive: p.keepAlive}
		p.byName[m.Name], p.all[l] = l, true
		go p.load(l)
	}
	l.users++
	if l.timer != nil {
		l.timer.Stop()
	}
	return l, nil, nil
}

// makeRoom drops the model that has been idle for longest and returns it, nil if
// none is idle.
func (p *pool) makeRoom() *loaded {
	var oldest *loaded
	for l := range p.all {
		if l.users == 0 && !l.loading && !l.gone && (oldest == nil || l.used.Before(oldest.used)) {
			oldest = l
		}
	}
	if oldest != nil {
		p.drop(oldest)
	}
	return oldest
}

// load opens the model. It is nobody's request: the next one for the model finds
// it, even if the first has gone.
func (p *pool) load(l *loaded) {
	start := time.Now()
	files, err := l.states()
	if err == nil {
		l.eng, err = p.openWithRoom(l)
	}
	if err != nil {
		failed := &Error{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("loading %s: %v", l.Name, err), cause: err}
		if errors.Is(err, engine.ErrOutOfMemory) {
			failed.RetryAfter = busyRetry // others may give theirs back; a broken file stays broken
		}
		l.err = failed
		p.log.Error("loading failed", "model", l.Name, "error", err)
	} else {
		p.log.Info("loaded", "model", l.Name, "seconds", time.Since(start).Seconds())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.files, l.loading = files, false
	close(l.ready)
	switch {
	case err != nil:
		p.forget(l)
		delete(p.all, l)
		p.signal()
	case p.closed:
		p.drop(l)
	case l.users == 0:
		p.idle(l)
	}
}

// openWithRoom opens a model. Where memory is missing for it, models that are idle
// give theirs back, the one that was not used for longest first, until it fits.
func (p *pool) openWithRoom(l *loaded) (*engine.Engine, error) {
	for {
		eng, err := p.open(context.Background(), l.options(p.opt))
		if err == nil || !errors.Is(err, engine.ErrOutOfMemory) {
			return eng, err
		}
		p.mu.Lock()
		oldest := p.makeRoom()
		p.mu.Unlock()
		if oldest == nil {
			return nil, err
		}
		p.log.Info("an idle model gives its memory back", "model", oldest.Name, "for", l.Name)
		<-oldest.closed
	}
}

// release gives a model back. keep, if not nil, is how long it stays from now on.
func (p *pool) release(l *loaded, keep *time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.users--
	if keep != nil {
		l.keepAlive = *keep
	}
	if l.users > 0 || l.loading || l.err != nil {
		return
	}
	if l.gone {
		p.shut(l)
		return
	}
	p.idle(l)
}

// idle starts the time that a model stays without a user.
func (p *pool) idle(l *loaded) {
	defer p.signal()
	l.used, l.expires = time.Now(), time.Time{}
	switch {
	case l.keepAlive == 0:
		p.drop(l)
		return
	case l.keepAlive < 0:
		return
	}
	expires := time.Now().Add(l.keepAlive)
	l.expires = expires
	l.timer = time.AfterFunc(l.keepAlive, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if l.users == 0 && !l.gone && l.expires.Equal(expires) {
			p.drop(l)
		}
	})
}

// unload drops a model by name as soon as nobody uses it. It reports whether the
// model was loaded.
func (p *pool) unload(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.byName[name]
	if l == nil || l.loading {
		return false
	}
	p.drop(l)
	return true
}

// drop takes a model out of the pool, and closes it if nobody uses it.
func (p *pool) drop(l *loaded) {
	if l.gone {
		return
	}
	p.forget(l)
	if l.users == 0 {
		p.shut(l)
	}
}

func (p *pool) forget(l *loaded) {
	l.gone = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if p.byName[l.Name] == l {
		delete(p.byName, l.Name)
	}
}

// shut closes a model that nobody uses and nobody can find.
func (p *pool) shut(l *loaded) {
	go func() {
		l.eng.Close()
		close(l.closed)
		p.log.Info("unloaded", "model", l.Name)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.all, l)
		p.signal()
	}()
}

// signal wakes those who wait for room.
func (p *pool) signal() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// close drops all models and waits until they are gone; requests must have ended
// or be about to.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for l := range p.all {
		if !l.loading {
			p.drop(l)
		}
	}
	for len(p.all) > 0 {
		wait := p.changed
		p.mu.Unlock()
		<-wait
		p.mu.Lock()
	}
	p.mu.Unlock()
}

// running is a loaded model as lists show it.
type running struct {
	*Model
	Expires time.Time // zero: never, or it is at work
	Busy    int       // requests at work
	Context int

	KeepAlive time.Duration // after the last request
	VRAM      int64         // bytes on GPUs
	Stats     engine.Stats
}

// list returns the loaded models by name.
func (p *pool) list() []running {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []running
	for _, l := range p.byName {
		if l.loading {
			continue
		}
		r := running{Model: l.Model, Busy: l.users, Context: l.eng.Context(), Stats: l.eng.Stats(), KeepAlive: l.keepAlive}
		for _, n := range l.eng.Choice().Needs {
			if !n.Device.IsCPU() {
				r.VRAM += n.Memory + n.Compute
			}
		}
		if l.users == 0 {
			r.Expires = l.expires
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b running) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// onlyLoading reports whether a model is being loaded and none is there.
func (p *pool) onlyLoading() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	loading := 0
	for _, l := range p.byName {
		if !l.loading {
			return false
		}
		loading++
	}
	return loading > 0
}
