package locate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/progress"
	"github.com/inkling-go/inkling/convert"
)

// cacheFormat is part of every entry's name. Raise it when the converter writes
// other files than before, so that old entries are not taken for new ones.
const cacheFormat = 1

// lockPoll is how often a run asks whether another one has finished converting.
const lockPoll = 100 * time.Millisecond

// convertCached returns the text file of a checkpoint. It is converted into the
// user's cache folder unless that was done before and the checkpoint is the same
// since. Runs at the same time convert one after the other, and an entry is there
// as a whole or not at all.
func convertCached(ctx context.Context, dir string, stderr io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%s is a checkpoint, and there is no cache folder to convert it into (%w): use convert-inkling", dir, err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	sum, err := fingerprint(abs)
	if err != nil {
		return "", err
	}
	root, name := filepath.Join(cache, "inkling"), filepath.Base(abs)
	entry := filepath.Join(root, name+"-"+sum)
	if path, ok := textFile(entry, name); ok {
		return path, nil
	}
	if err := os.MkdirAll(root, 0o777); err != nil {
		return "", err
	}
	unlock, err := lockFolder(ctx, root)
	if err != nil {
		return "", err
	}
	defer unlock()
	if path, ok := textFile(entry, name); ok { // another run was faster
		return path, nil
	}
	if err := convertInto(ctx, dir, entry, stderr); err != nil {
		_ = os.Remove(root) // unless there are other entries
		return "", err
	}
	path, ok := textFile(entry, name)
	if !ok {
		return "", fmt.Errorf("%s: the conversion left no %s-*.gguf there", entry, name)
	}
	return path, nil
}

// convertInto makes an entry of the cache, with the folder's lock held.
func convertInto(ctx context.Context, dir, entry string, stderr io.Writer) error {
	partial := entry + ".partial"
	for _, old := range []string{partial, entry} { // of a run that was killed; a damaged entry
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	show, done := progress.Conversion(stderr, fmt.Sprintf("note: converting %s, once; the result stays in %s", dir, entry))
	report, err := convert.Run(ctx, convert.Options{Dir: dir, OutDir: partial, OutType: convert.OutAuto, Progress: show})
	done(err)
	if err == nil {
		err = os.Rename(partial, entry)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	for _, note := range report.Notes {
		fmt.Fprintf(stderr, "note: %s\n", note)
	}
	return nil
}

// textFile finds the text model of an entry. The projector's name begins with
// mmproj.
func textFile(entry, name string) (string, bool) {
	files, err := os.ReadDir(entry)
	if err != nil {
		return "", false
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), name+"-") && strings.HasSuffix(f.Name(), ".gguf") {
			return filepath.Join(entry, f.Name()), true
		}
	}
	return "", false
}

// fingerprint tells checkpoints apart, and one from what it was before: by where
// it is and by the names, sizes and times of its files. Reading all of their data
// would take longer than converting them.
func fingerprint(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%q\n", cacheFormat, dir)
	for _, f := range files {
		st, err := os.Stat(filepath.Join(dir, f.Name())) // what a link leads to
		if err != nil {
			return "", err
		}
		if st.Mode().IsRegular() {
			fmt.Fprintf(h, "%q %d %d\n", f.Name(), st.Size(), st.ModTime().UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// lockFolder waits until no other process holds the folder's lock. The lock ends
// with the process, however that ends.
func lockFolder(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return func() { f.Close() }, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}
