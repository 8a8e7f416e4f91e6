package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// Work is a folder of the store for the files of one command until they are
// blobs. On the same disk they need not be copied. A collection leaves it alone
// until the command closes it or its process ends.
type Work struct {
	Dir  string
	lock *os.File
}

// NewWork creates an empty folder for a command.
func (s *Store) NewWork(ctx context.Context) (_ *Work, err error) {
	unlock, err := s.lock(ctx, false) // until it has its own lock
	if err != nil {
		return nil, err
	}
	defer unlock()
	root := filepath.Join(s.dir, "work")
	if err := s.mkdir(root); err != nil {
		return nil, err
	}
	w := new(Work)
	if w.Dir, err = os.MkdirTemp(root, ""); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if w.lock, err = os.Open(w.Dir); err != nil {
		return nil, err
	}
	return w, waitLock(ctx, w.lock, true)
}

// Close removes the folder with what is in it.
func (w *Work) Close() error {
	err := os.RemoveAll(w.Dir)
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	return err
}
