package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// copyChunk is how much is read between two looks at the context.
const copyChunk = 1 << 20

func (s *Store) blobPath(digest string) string {
	return filepath.Join(s.dir, "blobs", strings.Replace(digest, ":", "-", 1))
}

// hold keeps a blob that the store has from being collected. ok is false if it
// does not have it.
func (s *Store) hold(ctx context.Context, h *holding, f File) (ok bool, err error) {
	unlock, err := s.lock(ctx, false)
	if err != nil {
		return false, err
	}
	defer unlock()
	return s.holdLocked(ctx, h, f)
}

// holdLocked is hold with the store's lock held, which keeps collections away.
func (s *Store) holdLocked(ctx context.Context, h *holding, f File) (ok bool, err error) {
	b, err := os.Open(s.blobPath(f.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	st, err := b.Stat()
	if err == nil && st.Size() != f.Size {
		err = fmt.Errorf("%s: %d bytes, want %d; remove it", b.Name(), st.Size(), f.Size)
	}
	if err == nil {
		err = waitLock(ctx, b, false)
	}
	if err != nil {
		b.Close()
		return false, err
	}
	h.add(b)
	return true, nil
}

// takeIn makes a complete file of the store a blob and holds it. The file is
// open, and this process alone has it; it is closed with the holding. made is false if
// the store has the blob already.
func (s *Store) takeIn(ctx context.Context, h *holding, file *os.File, f File) (made bool, err error) {
	if err := errors.Join(file.Chmod(fileMode), file.Sync()); err != nil {
		return false, err
	}
	unlock, err := s.lock(ctx, false)
	if err != nil {
		return false, err
	}
	defer unlock()
	if ok, err := s.holdLocked(ctx, h, f); err != nil {
		return false, err
	} else if ok { // another process was faster
		return false, errors.Join(os.Remove(file.Name()), file.Close())
	}
	path := s.blobPath(f.Digest)
	if err := s.mkdir(filepath.Dir(path)); err != nil {
		return false, err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return false, err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return false, err
	}
	if err := waitLock(ctx, file, false); err != nil {
		return false, err
	}
	h.add(file)
	return true, nil
}

// sum reads a file to its end, into w unless that is nil, and returns its size
// and digest.
func sum(ctx context.Context, r io.Reader, w io.Writer, done func(int64)) (digest string, size int64, err error) {
	h := sha256.New()
	var to io.Writer = h
	if w != nil {
		to = io.MultiWriter(h, w)
	}
	buf := make([]byte, copyChunk)
	for {
		n, err := r.Read(buf)
		if _, err := to.Write(buf[:n]); err != nil {
			return "", 0, err
		}
		size += int64(n)
		done(int64(n))
		if errors.Is(err, io.EOF) {
			return digestOf(h), size, nil
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return "", 0, err
		}
	}
}

func digestOf(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }
