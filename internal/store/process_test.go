package store

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test binary is a process of its own if this is set: what it does, in the
// store of INKLING_HOME.
const helperVariable = "INKLING_TEST_STORE_HELPER"

func TestMain(m *testing.M) {
	if work := os.Getenv(helperVariable); work != "" {
		if err := helper(work); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// helper does one kind of work a number of times: "create 20". It says when it
// begins.
func helper(work string) error {
	kind, count, _ := strings.Cut(work, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	s, err := Open("")
	if err != nil {
		return err
	}
	s.hub.partSize = 64 << 10
	fmt.Println("ready")
	for i := range n {
		if err := step(s, kind, i); err != nil {
			return fmt.Errorf("%s, step %d: %w", kind, i, err)
		}
	}
	return nil
}

// step does one piece of work. Others may do theirs at the same time, so a model
// may be gone.
func step(s *Store, kind string, i int) error {
	ctx := context.Background()
	files := os.Getenv("INKLING_TEST_FILES")
	switch kind {
	case "create":
		name := fmt.Sprintf("created%d", i%3)
		f := &Modelfile{From: []From{{Ref: fmt.Sprintf("m%d.gguf", i%2)}}, Dir: files, System: strconv.Itoa(i)}
		_, err := s.Create(ctx, name, f, nil)
		return err
	case "import":
		w, err := s.NewWork(ctx)
		if err != nil {
			return err
		}
		for _, name := range []string{fmt.Sprintf("m%d.gguf", i%2), "mmproj-F16.gguf"} {
			data, err := os.ReadFile(filepath.Join(files, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(w.Dir, name), data, 0o600)
			}
			if err != nil {
				return err
			}
		}
		_, err = s.Import(ctx, "imported", "x", w, nil, nil)
		return errors.Join(err, w.Close())
	case "pull":
		if _, err := s.Pull(ctx, "hf.co/org/repo", nil); err != nil {
			return err
		}
		if err := s.Delete("hf.co/org/repo"); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	case "copy":
		err := s.Copy("kept", fmt.Sprintf("copy%d", i%2))
		if i%2 == 1 {
			err = errors.Join(err, s.Delete("copy0"))
		}
		return err
	case "gc":
		_, err := s.GC(ctx, GCOptions{})
		return err
	case "resolve":
		_, err := s.Resolve("kept")
		return err
	default:
		return fmt.Errorf("no work %q", kind)
	}
	return nil
}

// start starts a helper and waits until it begins.
func start(t *testing.T, s *Store, files, work string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), helperVariable+"="+work, "INKLING_TEST_FILES="+files, "INKLING_HOME="+s.Dir())
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%s: %q, %v", work, line, err)
	}
	return cmd
}

// someFiles writes the files that helpers make models of.
func someFiles(t *testing.T) string {
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"m0.gguf": makeGGUF(t, "inkling", 50000, 11), "m1.gguf": makeGGUF(t, "inkling", 60000, 12),
		"mmproj-F16.gguf": makeGGUF(t, "clip", 3000, 13),
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return dir
}

// keep puts a model into the store that must survive everything.
func keep(t *testing.T, s *Store, files string) {
	t.Helper()
	_, err := s.Create(t.Context(), "kept", &Modelfile{From: []From{{Ref: "m0.gguf"}}, Dir: files}, nil)
	check(t, err)
}

// consistent checks that every model of a store is whole and that the store keeps
// nothing that no model has, after a collection.
func consistent(t *testing.T, s *Store) {
	t.Helper()
	_, err := s.GC(t.Context(), GCOptions{})
	check(t, err)
	models, err := s.List()
	check(t, err)
	used, kept := map[string]bool{}, false
	for _, m := range models {
		kept = kept || m.Name == "kept:latest"
		got, err := s.Resolve(m.Name)
		check(t, err)
		dir := filepath.Dir(got.Model)
		for _, f := range got.Files {
			used[filepath.Base(s.blobPath(f.Digest))] = true
			file, err := os.Open(filepath.Join(dir, f.Name))
			check(t, err)
			h := sha256.New()
			_, err = io.Copy(h, file)
			check(t, err)
			check(t, file.Close())
			if digestOf(h) != f.Digest {
				t.Errorf("%s: %s has another hash than %s", m.Name, f.Name, f.Digest)
			}
		}
	}
	if !kept {
		t.Error("the model that was there before is gone")
	}
	blobs, err := os.ReadDir(filepath.Join(s.Dir(), "blobs"))
	check(t, err)
	for _, b := range blobs {
		// A journal that was being written is left alone for a minute.
		if !used[b.Name()] && !strings.HasPrefix(b.Name(), ".") {
			t.Errorf("nobody has %s", b.Name())
		}
	}
	work, err := os.ReadDir(filepath.Join(s.Dir(), "work"))
	check(t, err)
	if len(work) > 0 {
		t.Errorf("left in work: %v", work)
	}
}

// TestKilled kills processes at random points of what they do. The store is
// consistent then, and the same work can be done again.
func TestKilled(t *testing.T) {
	const kills = 8
	for _, kind := range []string{"create", "import", "pull", "copy", "gc"} {
		t.Run(kind, func(t *testing.T) {
			h := newFakeHub(t, map[string][]byte{"m-Q8_0.gguf": makeGGUF(t, "inkling", 80000, 14)})
			s := h.store(t)
			files := someFiles(t)
			keep(t, s, files)
			t.Setenv("INKLING_TEST_FILES", files) // for the steps of this process
			for range kills {
				if kind == "gc" { // with something to collect
					check(t, step(s, "create", rand.N(4)))
					check(t, os.WriteFile(filepath.Join(s.Dir(), "blobs", "sha256-"+strings.Repeat("0", 64)), nil, 0o600))
				}
				cmd := start(t, s, files, kind+" 100000")
				time.Sleep(rand.N(60 * time.Millisecond))
				check(t, cmd.Process.Kill())
				_ = cmd.Wait()
				if m, err := s.List(); err != nil || len(m) == 0 {
					t.Errorf("models after the kill: %d, %v", len(m), err)
				}
			}
			for i := range 2 {
				check(t, step(s, kind, i))
			}
			consistent(t, s)
		})
	}
}

// TestProcessesAtOnce has several processes work on one store, with collections
// between.
func TestProcessesAtOnce(t *testing.T) {
	h := newFakeHub(t, map[string][]byte{"m-Q8_0.gguf": makeGGUF(t, "inkling", 80000, 14)})
	s := h.store(t)
	files := someFiles(t)
	keep(t, s, files)
	var cmds []*exec.Cmd
	for _, work := range []string{"create 8", "create 8", "import 8", "pull 5", "pull 5", "gc 40", "resolve 200"} {
		cmds = append(cmds, start(t, s, files, work))
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", cmd.Env[len(cmd.Env)-3], err)
		}
	}
	consistent(t, s)
}
