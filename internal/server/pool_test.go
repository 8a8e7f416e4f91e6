package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inkling-go/inkling/internal/engine"
)

// copyModel is the trained model without its projector, in a file of its own.
func copyModel(t *testing.T, name string) *Model {
	t.Helper()
	data, err := os.ReadFile(tinyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), name+".gguf")
	if err := os.WriteFile(to, data, 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := FileModel(to)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newTestPool counts what is opened. Opening waits for gate, unless it is nil.
func newTestPool(t *testing.T, keep time.Duration, limit int, gate <-chan struct{}) (*pool, *atomic.Int32) {
	t.Helper()
	p := newPool(engine.Options{Threads: 1, Context: 256, KV: f32KV}, keep, limit, slog.New(slog.DiscardHandler))
	opened := new(atomic.Int32)
	p.open = func(ctx context.Context, o engine.Options) (*engine.Engine, error) {
		opened.Add(1)
		if gate != nil {
			<-gate
		}
		return engine.Open(ctx, o)
	}
	t.Cleanup(p.close)
	return p, opened
}

func acquire(t *testing.T, p *pool, m *Model) *loaded {
	t.Helper()
	l, err := p.acquire(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// names are the loaded models.
func (p *pool) names() (names []string) {
	for _, r := range p.list() {
		names = append(names, r.Name)
	}
	return names
}

// TestSingleFlight: requests that come while a model is loaded wait for it; those
// that go away leave it to the others.
func TestSingleFlight(t *testing.T) {
	gate := make(chan struct{})
	p, opened := newTestPool(t, Forever, 1, gate)
	m := copyModel(t, "a")
	gone, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range 8 {
		ctx := context.Background()
		if i == 0 {
			ctx = gone
		}
		wg.Go(func() {
			l, err := p.acquire(ctx, m)
			switch {
			case ctx == gone && !errors.Is(err, context.Canceled):
				t.Errorf("error %v of a request that has gone", err)
			case ctx != gone && err != nil:
				t.Error(err)
			case err == nil:
				p.release(l, nil)
			}
		})
	}
	eventually(t, "all wait", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.byName["a"] != nil && p.byName["a"].users == 8
	})
	if !p.onlyLoading() {
		t.Error("not loading")
	}
	cancel()
	eventually(t, "one has gone", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.byName["a"].users == 7
	})
	close(gate)
	wg.Wait()
	if n := opened.Load(); n != 1 {
		t.Errorf("loaded %d times", n)
	}
	if p.onlyLoading() {
		t.Error("still loading")
	}
}

func TestKeepAlive(t *testing.T) {
	p, opened := newTestPool(t, Forever, 1, nil)
	m := copyModel(t, "a")
	l := acquire(t, p, m)
	p.release(l, nil)
	if l2 := acquire(t, p, m); l2 != l {
		t.Error("not kept")
	} else {
		short := 10 * time.Millisecond
		p.release(l2, &short)
	}
	eventually(t, "unloaded after its time", func() bool { return len(p.names()) == 0 })

	l = acquire(t, p, m)
	now := time.Duration(0)
	other := acquire(t, p, m)
	p.release(l, &now)
	if len(p.names()) != 1 {
		t.Error("unloaded while it is used")
	}
	p.release(other, nil)
	if len(p.names()) != 0 {
		t.Error("kept with a keep-alive of 0")
	}
	if n := opened.Load(); n != 2 {
		t.Errorf("loaded %d times, want 2", n)
	}
}

// TestMaxLoaded: the model that is idle gives way; one that is busy does not.
func TestMaxLoaded(t *testing.T) {
	p, _ := newTestPool(t, Forever, 2, nil)
	a, b, c := copyModel(t, "a"), copyModel(t, "b"), copyModel(t, "c")
	la, lb := acquire(t, p, a), acquire(t, p, b)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.acquire(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v while both are busy", err)
	}
	got := make(chan *loaded)
	go func() {
		l, err := p.acquire(context.Background(), c)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	p.release(lb, nil)
	lc := <-got
	if names := p.names(); len(names) != 2 || names[0] != "a" || names[1] != "c" {
		t.Errorf("loaded: %v", names)
	}
	p.release(la, nil)
	p.release(lc, nil)
	if !p.unload("a") || p.unload("a") || len(p.names()) != 1 {
		t.Errorf("loaded after unloading a: %v", p.names())
	}
}

// TestChangedFiles: a model whose file is another one is loaded again.
func TestChangedFiles(t *testing.T) {
	p, opened := newTestPool(t, Forever, 2, nil)
	m := copyModel(t, "a")
	busy := acquire(t, p, m)
	p.release(acquire(t, p, m), nil)
	data, err := os.ReadFile(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(m.Path); err != nil { // what is mapped stays
		t.Fatal(err)
	}
	if _, err := p.acquire(context.Background(), m); asError(err).Status != 503 {
		t.Errorf("error %v without the file", err)
	}
	if err := os.WriteFile(m.Path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	l := acquire(t, p, m)
	if l == busy || opened.Load() != 2 {
		t.Errorf("the model of the old file, %d loads", opened.Load())
	}
	p.release(busy, nil)
	p.release(l, nil)
	if names := p.names(); len(names) != 1 {
		t.Errorf("loaded: %v", names)
	}
}

// TestWatchedFiles: all files that a model consists of are looked at.
func TestWatchedFiles(t *testing.T) {
	files, err := tinyModel(t).states()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f.path))
	}
	want := []string{"inkling-tiny-F32.gguf", "mmproj-inkling-tiny-F32.gguf", "mtp-inkling-tiny-F32.gguf"}
	if !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	dir := t.TempDir()
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("m-%05d-of-00003.gguf", i+1)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	files, err = (&Model{Path: filepath.Join(dir, "m-00001-of-00003.gguf")}).states()
	if err != nil || len(files) != 3 {
		t.Errorf("%d files of a split model, error %v", len(files), err)
	}
}

// TestLoadError: a failure is told to all who wait, and is not kept.
func TestLoadError(t *testing.T) {
	p, opened := newTestPool(t, Forever, 1, nil)
	m := copyModel(t, "a")
	if err := os.WriteFile(m.Path, []byte("GGUF"), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := p.acquire(context.Background(), m)
		if e := asError(err); e.Status != 503 {
			t.Errorf("error %v", err)
		}
	}
	if opened.Load() != 2 || len(p.names()) != 0 {
		t.Errorf("opened %d times, loaded %v", opened.Load(), p.names())
	}
}

func TestParseKeepAlive(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "30": 30 * time.Second, "0": 0, "0s": 0, "1.5": 1500 * time.Millisecond,
		"-1": Forever, "-1m": Forever, "-inf": Forever, "1e30": Forever,
	} {
		if got, err := ParseKeepAlive(in); err != nil || got != want {
			t.Errorf("%s: %v, error %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "soon", "5 m", "NaN"} {
		if got, err := ParseKeepAlive(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

// TestRoomForModel: a model for which memory is missing gets that of idle ones, the
// one that was not used for longest first, and no more of them than it takes.
func TestRoomForModel(t *testing.T) {
	p, _ := newTestPool(t, Forever, 9, nil)
	open, room := p.open, 3
	p.open = func(ctx context.Context, o engine.Options) (*engine.Engine, error) {
		p.mu.Lock()
		n := 0
		for l := range p.all {
			select {
			case <-l.closed: // it has given its memory back
			default:
				if !l.loading {
					n++
				}
			}
		}
		p.mu.Unlock()
		if n >= room {
			return nil, errOutOfMemory
		}
		return open(ctx, o)
	}
	models := map[string]*Model{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		models[name] = copyModel(t, name)
	}
	use := func(name string) *loaded { t.Helper(); return acquire(t, p, models[name]) }
	leave := func(l *loaded, keep time.Duration) { p.release(l, &keep) }
	leave(use("a"), Forever)
	leave(use("b"), time.Minute) // keeps for less time, and is not older for that
	leave(use("c"), time.Hour)
	leave(use("a"), Forever) // used again

	want := func(names ...string) {
		t.Helper()
		if got := p.names(); !slices.Equal(got, names) {
			t.Errorf("loaded %v, want %v", got, names)
		}
	}
	d := use("d")
	want("a", "c", "d")
	leave(use("e"), Forever) // c is older than a now
	want("a", "d", "e")
	room = 2 // as if another program took some
	c := use("c")
	want("c", "d")

	// With nobody idle it does not fit, and those at work stay.
	_, err := p.acquire(t.Context(), models["a"])
	var failed *Error
	if !errors.As(err, &failed) || failed.Status != 503 || failed.RetryAfter == 0 || !errors.Is(err, engine.ErrOutOfMemory) {
		t.Errorf("error %v without room", err)
	}
	want("c", "d")
	leave(d, Forever)
	leave(use("a"), Forever)
	want("a", "c")
	leave(c, Forever)
}

// TestBrokenFileTakesNoRoom: what is wrong with a file costs no other model its
// memory.
func TestBrokenFileTakesNoRoom(t *testing.T) {
	p, _ := newTestPool(t, Forever, 9, nil)
	a := copyModel(t, "a")
	p.release(acquire(t, p, a), nil)
	open := p.open
	p.open = func(ctx context.Context, o engine.Options) (*engine.Engine, error) {
		if o.Model == a.Path {
			return open(ctx, o)
		}
		return nil, errors.New("broken")
	}
	if _, err := p.acquire(t.Context(), copyModel(t, "b")); err == nil {
		t.Error("no error")
	}
	if got := p.names(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("loaded %v, want a", got)
	}
}
