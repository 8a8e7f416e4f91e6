package locate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sum := func() string {
		t.Helper()
		s, err := fingerprint(dir)
		must(err)
		return s
	}
	then := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	must(os.WriteFile(path, []byte("abc"), 0o666))
	must(os.Chtimes(path, then, then))
	first := sum()
	must(os.Mkdir(filepath.Join(dir, "folder"), 0o777))
	if got := sum(); got != first {
		t.Errorf("a folder changes %s to %s", first, got)
	}
	seen := map[string]string{first: "the first"}
	for _, change := range []struct {
		name string
		do   func() error
	}{
		{"time", func() error { return os.Chtimes(path, then, then.Add(1)) }},
		{"size", func() error {
			return errors.Join(os.WriteFile(path, []byte("abcd"), 0o666), os.Chtimes(path, then, then))
		}},
		{"another file", func() error { return os.WriteFile(filepath.Join(dir, "config.json"), nil, 0o666) }},
		{"name", func() error { return os.Rename(path, path+"2") }},
	} {
		must(change.do())
		got := sum()
		if before, ok := seen[got]; ok {
			t.Errorf("%s gives %s, as does %s", change.name, got, before)
		}
		seen[got] = change.name
	}
	must(os.Symlink("gone", filepath.Join(dir, "link")))
	if _, err := fingerprint(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link to nothing: error %v", err)
	}
}

func TestLockFolder(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lockFolder(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: error %v, want that the time is over", err)
	}
	got := make(chan error, 1)
	go func() {
		unlock, err := lockFolder(t.Context(), dir)
		if err == nil {
			unlock()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
