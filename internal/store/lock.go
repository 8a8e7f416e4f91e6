package store

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// lockPoll is how often a process asks whether another one has given up a lock.
const lockPoll = 20 * time.Millisecond

// waitLock waits for a lock of tryLock.
func waitLock(ctx context.Context, f *os.File, exclusive bool) error {
	for {
		if ok, err := tryLock(f, exclusive); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

// lock takes the lock of the whole store, after creating the store if it is not
// there. No data is moved while it is held.
func (s *Store) lock(ctx context.Context, exclusive bool) (unlock func(), err error) {
	if err := s.mkdir(s.dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := waitLock(ctx, f, exclusive); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// holding keeps blobs from being collected until it is closed, by shared locks
// on them.
type holding struct {
	mu    sync.Mutex
	files []*os.File
}

func (h *holding) add(f *os.File) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files = append(h.files, f)
}

func (h *holding) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.files {
		f.Close()
	}
	h.files = nil
}
