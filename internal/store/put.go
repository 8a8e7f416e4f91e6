package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrNoBlob is wrapped by the error for a digest that the store has no blob of.
var ErrNoBlob = errors.New("no such blob in the store")

// ErrDigest is wrapped by the error for content that has another hash than it
// should have.
var ErrDigest = errors.New("the content has another hash")

// HasBlob reports whether the store has the content with a digest, sha256:HEX.
func (s *Store) HasBlob(digest string) (bool, error) {
	if !digestForm.MatchString(digest) {
		return false, fmt.Errorf("digest %q, want sha256: and 64 hexadecimal digits in lower case", digest)
	}
	_, err := os.Stat(s.blobPath(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// PutBlob reads content to its end and stores it under its digest, for a
// [Modelfile] to name. Until a model has it, a collection may take it again.
func (s *Store) PutBlob(ctx context.Context, digest string, r io.Reader) (err error) {
	if there, err := s.HasBlob(digest); err != nil || there {
		return err
	}
	a, err := s.newAdding(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.finish()) }()
	dst, err := os.CreateTemp(a.work.Dir, "")
	if err != nil {
		return err
	}
	defer dst.Close()
	got, size, err := sum(ctx, r, dst, func(int64) {})
	if err != nil {
		return fmt.Errorf("%s: %w", digest, err)
	}
	if got != digest {
		return fmt.Errorf("%w: %s, want %s", ErrDigest, got, digest)
	}
	return a.keep(ctx, dst, File{Name: digest, Digest: digest, Size: size})
}
