package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
)

// download fetches one file of the hub into a partial file of the store.
type download struct {
	hub   *hub
	name  Name
	file  wanted
	slots chan struct{} // connections that may still be opened, by all downloads of a pull

	partial *os.File
	journal string // its path

	report func(done int64) // bytes of the file that are there

	mu       sync.Mutex
	j        *journal
	throttle throttle
}

// maxRestarts is how often a file that changes while it is fetched is begun again.
const maxRestarts = 2

var (
	errNoRange = errors.New("the server has no ranges")
	errChanged = errors.New("the file changes on the server while it is fetched")
)

// open continues what an earlier pull left, or begins. A journal of another
// partial file, which a process that was killed can leave, goes before the new
// file has the size that the journal is believed by.
func (d *download) open() (err error) {
	if d.j, err = leftJournal(d.partial.Name(), d.file.size); err != nil || d.j != nil {
		return err
	}
	if err := removeIfThere(d.journal); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(d.journal)); err != nil {
		return err
	}
	d.j = newJournal(d.file.size, d.hub.partSize)
	return d.partial.Truncate(d.file.size)
}

// run fetches what is missing. With an error the journal says what is there.
func (d *download) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.save()) }()
	for restarts := 0; ; restarts++ {
		err := d.attempt(ctx)
		if !errors.Is(err, errChanged) {
			return err
		}
		if restarts == maxRestarts {
			return fmt.Errorf("%s: %w", d.file.path, err)
		}
		d.mu.Lock()
		d.j = newJournal(d.file.size, d.hub.partSize)
		d.mu.Unlock()
	}
}

// attempt fetches the first missing part alone, which shows what the server can
// do, and then the others side by side.
func (d *download) attempt(ctx context.Context) error {
	missing := d.j.missing()
	if len(missing) == 0 {
		return nil
	}
	err := d.part(ctx, missing[0])
	if err == nil {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(d.hub.connections)
		for _, i := range missing[1:] {
			g.Go(func() error { return d.part(ctx, i) })
		}
		err = g.Wait()
	}
	if errors.Is(err, errNoRange) {
		return d.whole(ctx)
	}
	return err
}

// part fetches what is missing of one part, with as many connections, one after
// the other, as it takes.
func (d *download) part(ctx context.Context, i int) error {
	err := d.hub.retry.doProgress(ctx, func() (bool, error) {
		if err := d.slot(ctx); err != nil {
			return false, err
		}
		defer func() { <-d.slots }()
		before := d.there(i)
		err := d.ranged(ctx, i)
		return d.there(i) > before, err
	})
	if err != nil {
		return err
	}
	return d.save()
}

func (d *download) slot(ctx context.Context) error {
	select {
	case d.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// there is the number of bytes of a part that are in the file.
func (d *download) there(i int) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.j.Done[i]
}

// advance notes that a part has n more bytes.
func (d *download) advance(i int, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.j.Done[i] += n
	d.tell(false)
}

// whole fetches the file from a server without ranges, from its beginning each
// time.
func (d *download) whole(ctx context.Context) error {
	return d.hub.retry.do(ctx, func() error {
		if err := d.slot(ctx); err != nil {
			return err
		}
		defer func() { <-d.slots }()
		return d.unranged(ctx)
	})
}

// reach notes that the first n bytes of the file are there and nothing else.
func (d *download) reach(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.j.Done {
		d.j.Done[i] = max(0, min(d.j.length(i), n-int64(i)*d.j.Part))
	}
	d.tell(false)
}

// tell reports progress, with the lock held.
func (d *download) tell(always bool) {
	if d.throttle.ready() || always {
		d.report(d.j.done())
	}
}

// save writes the journal, after the data that it tells about.
func (d *download) save() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tell(true)
	if err := d.partial.Sync(); err != nil {
		return err
	}
	data, err := json.Marshal(d.j)
	if err != nil {
		return err
	}
	if err := writeFile(d.journal, data); err != nil {
		return fmt.Errorf("%s: %w", d.file.path, err)
	}
	return nil
}
