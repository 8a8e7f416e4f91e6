package store

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/inkling-go/inkling/internal/gguf"
)

// maxHubFile bounds what the list of a repository can say of a file, far above
// what the hub takes.
const maxHubFile = 1 << 50

// filesAtOnce is how many files of a model are fetched side by side; each may
// have several connections.
const filesAtOnce = 4

// busyPoll is how often a pull asks whether another process has fetched a file.
const busyPoll = 200 * time.Millisecond

// ErrCheckpoint is wrapped by the error for a repository that has a checkpoint and
// no GGUF files.
var ErrCheckpoint = errors.New("it has a checkpoint (safetensors) and no GGUF files")

// wanted is a file of the hub that a pull fetches.
type wanted struct {
	role   Role
	path   string // in the repository
	size   int64
	digest string // sha256:HEX; empty if the hub does not say
	oid    string // then: sha1 of git's blob
}

// Pull fetches a model from the Hugging Face Hub, or from the mirror that
// HF_ENDPOINT names, and gives it its name there. The tag is a type of
// quantisation or the name of a file; without one a usual type is taken. What
// belongs to the model, the projector and the layers for multi-token prediction,
// comes along.
//
// A pull that fails or is cancelled leaves what it has, and the next one goes on
// from there. Several processes may pull the same model: each file is fetched
// once. progress may be nil; it is called from one goroutine at a time.
func (s *Store) Pull(ctx context.Context, name string, progress func(Progress)) (_ *Model, err error) {
	n, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	if !n.OnHub() {
		return nil, fmt.Errorf("%s: only models of the hub can be pulled: hf.co/ORG/REPO[:QUANT]", name)
	}
	if err := s.hub.check(); err != nil {
		return nil, err
	}
	a, err := s.newAdding(ctx, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.finish()) }()
	a.report(Progress{Status: "pulling manifest"})
	all, err := s.hub.list(ctx, n)
	if err != nil {
		return nil, err
	}
	files, err := wantedFiles(n, all)
	if err != nil {
		return nil, err
	}
	m := &manifest{Source: fmt.Sprintf("%s/%s/%s", s.hub.endpoint, n.Namespace, n.Repo)}
	if m.Files, err = a.fetchAll(ctx, n, files); err != nil {
		return nil, err
	}
	return a.complete(ctx, n, m, new(Modelfile))
}

// wantedFiles picks the files of a model from those of its repository.
func wantedFiles(n Name, all []hubFile) ([]wanted, error) {
	byPath := map[string]hubFile{}
	var paths []string
	checkpoint := false
	for _, f := range all {
		if _, twice := byPath[f.Path]; twice || f.Type == "directory" {
			continue
		}
		byPath[f.Path] = f
		paths = append(paths, f.Path)
		checkpoint = checkpoint || strings.HasSuffix(f.Path, ".safetensors")
	}
	repo := n.Host + "/" + n.Namespace + "/" + n.Repo
	c, err := choose(repo, n.Tag, paths)
	var quant *QuantError
	if err != nil && checkpoint && !errors.As(err, &quant) {
		return nil, fmt.Errorf("%s: %w: download it, and inkling-run import DIR NAME converts it", repo, ErrCheckpoint)
	}
	if err != nil {
		return nil, err
	}
	var files []wanted
	for _, of := range c.files() {
		w, err := byPath[of.Name].wanted(of.Role)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", repo, err)
		}
		files = append(files, w)
	}
	return files, nil
}

func (f hubFile) wanted(role Role) (wanted, error) {
	w := wanted{role: role, path: f.Path, size: f.Size, oid: f.OID}
	if f.LFS != nil {
		w.size, w.digest = f.LFS.Size, "sha256:"+f.LFS.OID
		if !digestForm.MatchString(w.digest) {
			return w, fmt.Errorf("the list of files has %q as the sha256 of %s", f.LFS.OID, f.Path)
		}
	} else if b, err := hex.DecodeString(f.OID); err != nil || len(b) != sha1.Size {
		return w, fmt.Errorf("the list of files has %q as the id of %s, want a sha1", f.OID, f.Path)
	}
	if w.size < 0 || w.size > maxHubFile {
		return w, fmt.Errorf("the list of files has %d as the size of %s", w.size, f.Path)
	}
	return w, nil
}

// partialPath is where a file is fetched to.
func (s *Store) partialPath(w wanted) string {
	if w.digest == "" {
		return s.blobPath("sha1:"+w.oid) + partialSuffix
	}
	return s.blobPath(w.digest) + partialSuffix
}

// fetchAll fetches the files that the store does not have.
func (a *adding) fetchAll(ctx context.Context, n Name, files []wanted) ([]File, error) {
	if err := a.s.mkdir(filepath.Join(a.s.dir, "blobs")); err != nil {
		return nil, err
	}
	if err := a.roomFor(files); err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	slots := make(chan struct{}, a.s.hub.connections)
	out := make([]File, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(filesAtOnce)
	for i, w := range files {
		g.Go(func() (err error) {
			out[i], err = a.fetch(ctx, n, w, slots)
			return err
		})
	}
	return out, g.Wait()
}

// roomFor checks the disk for what is still to be fetched.
func (a *adding) roomFor(files []wanted) error {
	var need int64
	for _, w := range files {
		if w.digest != "" {
			if _, err := os.Stat(a.s.blobPath(w.digest)); err == nil {
				continue
			}
		}
		need += w.size
		j, err := leftJournal(a.s.partialPath(w), w.size)
		if err != nil {
			return err
		}
		if j != nil {
			need -= j.done()
		}
	}
	return a.s.checkSpace(need)
}

func journalPath(partial string) string {
	return strings.TrimSuffix(partial, partialSuffix) + journalSuffix
}

// fetch fetches a file, or waits for the process that does, and holds it.
func (a *adding) fetch(ctx context.Context, n Name, w wanted, slots chan struct{}) (File, error) {
	f := File{Role: w.role, Name: safeName(path.Base(w.path)), Digest: w.digest, Size: w.size}
	status := "pulling " + path.Base(w.path)
	report := func(done int64) {
		a.report(Progress{Status: status, File: path.Base(w.path), Digest: w.digest, Total: w.size, Completed: done})
	}
	report(0)
	partial, err := a.claim(ctx, f, w)
	if err != nil {
		return f, err
	}
	if partial == nil {
		report(w.size)
		return f, nil
	}
	d := &download{hub: &a.s.hub, name: n, file: w, slots: slots, partial: partial, journal: journalPath(partial.Name()), report: report}
	err = d.open()
	if err == nil {
		err = d.run(ctx)
	}
	if err == nil {
		f.Digest, err = a.verify(ctx, partial, w)
		if errors.Is(err, ErrDigest) {
			err = errors.Join(err, os.Remove(partial.Name()), os.Remove(d.journal))
		}
	}
	if err == nil {
		_, err = a.s.takeIn(ctx, &a.holding, partial, f)
	}
	if err != nil {
		partial.Close()
		return f, err
	}
	return f, removeIfThere(d.journal)
}

// claim opens the partial file for this process alone. It returns nil if the blob
// is there, which another process may have fetched meanwhile.
func (a *adding) claim(ctx context.Context, f File, w wanted) (*os.File, error) {
	path := a.s.partialPath(w)
	for waiting := false; ; waiting = true {
		partial, busy, err := claimPartial(path)
		if err != nil {
			return nil, err
		}
		if w.digest != "" {
			ok, err := a.s.hold(ctx, &a.holding, f)
			if (ok || err != nil) && partial != nil {
				err = errors.Join(err, os.Remove(path), partial.Close())
			}
			if ok || err != nil {
				return nil, err
			}
		}
		if !busy {
			return partial, nil
		}
		if !waiting {
			a.report(Progress{Status: "waiting for another process to pull " + w.path, File: w.path, Digest: w.digest, Total: w.size})
		}
		if err := pause(ctx, busyPoll); err != nil {
			return nil, err
		}
	}
}

// claimPartial takes a partial file as it is, or a new one. busy says that another
// process has it.
func claimPartial(path string) (f *os.File, busy bool, err error) {
	if f, err = gguf.Claim(path, false); errors.Is(err, os.ErrNotExist) {
		f, err = gguf.Claim(path, true)
	}
	if errors.Is(err, gguf.ErrBusy) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := f.Chmod(fileMode); err != nil {
		f.Close()
		return nil, false, err
	}
	return f, false, nil
}

// verify hashes a complete file and returns its digest. One that has another hash
// than the hub says is ErrDigest.
func (a *adding) verify(ctx context.Context, partial *os.File, w wanted) (string, error) {
	p := Progress{Status: "verifying sha256 digest of " + path.Base(w.path), File: path.Base(w.path), Total: w.size}
	var git hash.Hash // the hub's id of small files
	var to io.Writer
	if w.digest == "" {
		git = sha1.New()
		fmt.Fprintf(git, "blob %d\x00", w.size)
		to = git
	}
	digest, _, err := a.sum(ctx, p, io.NewSectionReader(partial, 0, w.size), to)
	if err != nil {
		return "", fmt.Errorf("%s: %w", w.path, err)
	}
	got, want := digest, w.digest
	if git != nil {
		got, want = "sha1 "+hex.EncodeToString(git.Sum(nil)), "sha1 "+w.oid
	}
	if got != want {
		return "", fmt.Errorf("%s: %w: %s, want %s; what was fetched of it is removed, pull it again", w.path, ErrDigest, got, want)
	}
	return digest, nil
}
