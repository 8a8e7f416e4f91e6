package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// adding puts files into the store for one command. What it has put there is held
// until it is closed.
type adding struct {
	holding
	s      *Store
	work   *Work
	report func(Progress) // for one goroutine at a time
	made   []File         // whose blobs the store did not have before
}

func (s *Store) newAdding(ctx context.Context, report func(Progress)) (*adding, error) {
	w, err := s.NewWork(ctx)
	if err != nil {
		return nil, err
	}
	a := &adding{s: s, work: w, report: func(Progress) {}}
	if report != nil {
		var mu sync.Mutex
		a.report = func(p Progress) {
			mu.Lock()
			defer mu.Unlock()
			report(p)
		}
	}
	return a, nil
}

// finish lets go of the blobs.
func (a *adding) finish() error {
	a.close()
	return a.work.Close()
}

// finishMade is finish for a command that makes a model of files which the user
// has. If it failed they do not stay in the store too.
func (a *adding) finishMade(failed error) error {
	a.close()
	var err error
	if failed != nil && len(a.made) > 0 {
		err = a.s.discard(a.made)
	}
	return errors.Join(failed, err, a.work.Close())
}

// copyIn puts a file of the user into the store. The user's stays what it is, so
// the store gets its own, which shares the data if the disk can do that.
func (a *adding) copyIn(ctx context.Context, path string, role Role) (File, error) {
	src, err := openRegular(path)
	if err != nil {
		return File{}, err
	}
	defer src.Close()
	if f, ok, err := a.already(ctx, path, role); ok || err != nil {
		return f, err
	}
	st, err := src.Stat()
	if err != nil {
		return File{}, err
	}
	dst, err := os.CreateTemp(a.work.Dir, "")
	if err != nil {
		return File{}, err
	}
	defer dst.Close()
	f := File{Role: role, Name: safeName(path)}
	p := Progress{Status: "copying " + f.Name, File: f.Name, Total: st.Size()}
	from, to := io.Reader(src), io.Writer(dst)
	if clone(dst, src) {
		from, to = dst, nil
	} else if err := a.s.checkSpace(st.Size()); err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	f.Digest, f.Size, err = a.sum(ctx, p, from, to)
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, a.keep(ctx, dst, f)
}

// moveIn puts a file of the command's own folder into the store.
func (a *adding) moveIn(ctx context.Context, path string, role Role) (File, error) {
	src, err := openRegular(path)
	if err != nil {
		return File{}, err
	}
	defer src.Close()
	st, err := src.Stat()
	if err != nil {
		return File{}, err
	}
	f := File{Role: role, Name: safeName(path)}
	p := Progress{Status: "hashing " + f.Name, File: f.Name, Total: st.Size()}
	if f.Digest, f.Size, err = a.sum(ctx, p, src, nil); err != nil {
		return File{}, fmt.Errorf("%s: %w", path, err)
	}
	return f, a.keep(ctx, src, f)
}

// keep makes a blob of a file that is the command's own. The holding gets a
// descriptor of its own.
func (a *adding) keep(ctx context.Context, file *os.File, f File) error {
	own, err := os.Open(file.Name())
	if err != nil {
		return err
	}
	made, err := a.s.takeIn(ctx, &a.holding, own, f)
	if err != nil {
		own.Close()
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if made {
		a.made = append(a.made, f)
	}
	return nil
}

// sum hashes what r has, and copies it if there is a writer, with progress.
func (a *adding) sum(ctx context.Context, p Progress, r io.Reader, w io.Writer) (string, int64, error) {
	var t throttle
	return sum(ctx, r, w, func(n int64) {
		if p.Completed += n; t.ready() || p.Completed == p.Total {
			a.report(p)
		}
	})
}

// already finds a file that is a link of the store's own.
func (a *adding) already(ctx context.Context, path string, role Role) (f File, ok bool, err error) {
	abs, err := filepath.Abs(path)
	if err != nil || !strings.HasPrefix(abs, filepath.Join(a.s.dir, "models")+string(filepath.Separator)) {
		return File{}, false, err
	}
	found := errors.New("found")
	err = a.s.each(func(n Name, m *manifest) error {
		dir, err := a.s.dirOf(n, m)
		if err != nil || dir != filepath.Dir(abs) || a.s.linked(n, m) != nil {
			return nil
		}
		for _, of := range m.Files {
			if of.Name == filepath.Base(abs) {
				f = of
				return found
			}
		}
		return nil
	})
	if !errors.Is(err, found) { // what else is wrong with the store is not asked here
		return File{}, false, nil
	}
	f.Role = role
	ok, err = a.s.hold(ctx, &a.holding, f)
	return f, ok, err
}

// inspect reads what the files say about themselves, by links in the command's
// folder.
func (a *adding) inspect(files []File) (Details, error) {
	dir, err := os.MkdirTemp(a.work.Dir, "")
	if err != nil {
		return Details{}, err
	}
	first, parts := map[Role]string{}, 0
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		st, err := a.s.blob(f)
		if err != nil {
			return Details{}, err
		}
		if err := linkFile(a.s.blobPath(f.Digest), path, st); err != nil {
			return Details{}, err
		}
		if f.Role == RoleModel {
			parts++
		}
		if first[f.Role] == "" {
			first[f.Role] = path
		}
	}
	d, err := details(first[RoleModel], parts, first[RoleMMProj])
	if err != nil {
		// The folder is about to go; the names of the files say enough.
		return d, &inspectError{strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""), err}
	}
	return d, nil
}

// inspectError is an error of the gguf package without the folder of the links.
type inspectError struct {
	msg string
	err error
}

func (e *inspectError) Error() string { return e.msg }
func (e *inspectError) Unwrap() error { return e.err }

func openRegular(path string) (*os.File, error) {
	st, err := os.Stat(path) // before Open, which waits for the writer of a pipe
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9_.+=@,~ -]+`)

// safeName is the name of a path's file as the store can have it.
func safeName(path string) string {
	base := filepath.Base(path)
	if ext := filepath.Ext(base); strings.EqualFold(ext, ".gguf") {
		base = base[:len(base)-len(ext)]
	}
	base = unsafeInName.ReplaceAllString(base, "_")
	if n := len(base) - maxFileName; n > 0 {
		base = base[n:] // the end has the number of the part
	}
	if base == "" || !isAlnum(rune(base[0])) {
		base = "_" + strings.TrimLeft(base, "_.+=@,~ -")
	}
	return base + ".gguf"
}

// maxFileName is how long the name of a file may be without .gguf.
const maxFileName = 200
