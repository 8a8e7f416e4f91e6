package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fill makes models of the store: name and file of someFiles.
func fill(t *testing.T, s *Store, files string, models ...string) {
	t.Helper()
	for i := 0; i < len(models); i += 2 {
		_, err := s.Create(t.Context(), models[i], &Modelfile{From: []From{{Ref: models[i+1]}}, Dir: files}, nil)
		check(t, err)
	}
}

func names(t *testing.T, s *Store) (list []string) {
	t.Helper()
	models, err := s.List()
	check(t, err)
	for _, m := range models {
		list = append(list, m.Name)
	}
	slices.Sort(list)
	return list
}

func blobs(t *testing.T, s *Store) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.Dir(), "blobs", "*"))
	check(t, err)
	return len(found)
}

func TestOpen(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("INKLING_HOME", "")
	s, err := Open("")
	check(t, err)
	if want := filepath.Join(home, ".inkling"); s.Dir() != want {
		t.Errorf("store at %s, want %s", s.Dir(), want)
	}
	t.Setenv("INKLING_HOME", filepath.Join(home, "other"))
	s, err = Open("")
	check(t, err)
	if want := filepath.Join(home, "other"); s.Dir() != want {
		t.Errorf("store at %s, want %s", s.Dir(), want)
	}
	// Reading makes nothing.
	if list, err := s.List(); err != nil || list != nil {
		t.Errorf("list %v, %v", list, err)
	}
	if _, err := s.Resolve("x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
	if _, err := os.Stat(s.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

// TestResolveRepairs takes the links away, which is all that is lost with the
// models folder.
func TestResolveRepairs(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	fill(t, s, files, "a", "m0.gguf")
	m, err := s.Resolve("a")
	check(t, err)
	for _, damage := range []func() error{
		func() error { return os.RemoveAll(filepath.Join(s.Dir(), "models")) },
		func() error { return os.Remove(m.Model) },
		func() error {
			return errors.Join(os.Remove(m.Model), os.WriteFile(m.Model, []byte("another file"), 0o600))
		},
	} {
		check(t, damage())
		_, err := s.Resolve("a")
		check(t, err)
		data, err := os.ReadFile(filepath.Join(files, "m0.gguf"))
		check(t, err)
		wantFile(t, m.Model, data)
	}
	blob := s.blobPath(m.Files[0].Digest)
	check(t, os.Remove(m.Model))
	check(t, os.Truncate(blob, 100))
	if _, err := s.Resolve("a"); err == nil || !strings.Contains(err.Error(), "has 100 bytes, want ") {
		t.Errorf("error %v for a short blob", err)
	}
	check(t, os.Remove(blob))
	if _, err := s.Resolve("a"); err == nil || !strings.Contains(err.Error(), "is missing in the store; pull or create") {
		t.Errorf("error %v for a missing blob", err)
	}
}

// TestReplace checks that a model that is replaced leaves nothing, and that a
// file of it that is open stays readable.
func TestReplace(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	fill(t, s, files, "a", "m0.gguf")
	old, err := s.Resolve("a")
	check(t, err)
	open, err := os.Open(old.Model)
	check(t, err)
	defer open.Close()
	fill(t, s, files, "A", "m1.gguf")
	if diff := cmp.Diff([]string{"A:latest"}, names(t, s)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if n := blobs(t, s); n != 2 { // with the projector
		t.Errorf("%d blobs, want 2", n)
	}
	if _, err := os.Stat(old.Model); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old link: %v", err)
	}
	if _, err := open.ReadAt(make([]byte, 1), old.Files[0].Size-1); err != nil {
		t.Errorf("the open file: %v", err)
	}
}

func TestCopyAndDelete(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	fill(t, s, files, "a", "m0.gguf", "b", "m1.gguf")
	check(t, s.Copy("a", "hf.co/x/y:z"))
	check(t, s.Copy("a", "b")) // in place of another
	if diff := cmp.Diff([]string{"a:latest", "b:latest", "hf.co/x/y:z"}, names(t, s)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if n := blobs(t, s); n != 2 {
		t.Errorf("%d blobs, want 2", n)
	}
	check(t, s.Delete("a"))
	check(t, s.Delete("b"))
	_, err := s.Resolve("hf.co/x/y:z")
	check(t, err)
	check(t, s.Delete("hf.co/x/y:z"))
	if n := blobs(t, s); n != 0 {
		t.Errorf("%d blobs, want none", n)
	}
	for _, err := range []error{s.Delete("a"), s.Copy("a", "b")} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("error %v, want ErrNotFound", err)
		}
	}
}

func TestNear(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	fill(t, s, files, "inkling", "m0.gguf")
	for _, name := range []string{"inkling:q8", "kimi", "hf.co/org/inkling-GGUF:Q4_K_M"} {
		check(t, s.Copy("inkling", name))
	}
	for name, want := range map[string][]string{
		"inkling:q4":                  {"inkling:latest", "inkling:q8"},
		"inklng":                      {"inkling:latest"},
		"Kimmi":                       {"kimi:latest"},
		"hf.co/org/inkling-gguf:Q8_0": {"hf.co/org/inkling-GGUF:Q4_K_M"},
		"llama":                       nil,
	} {
		_, err := s.Resolve(name)
		var missing *NotFoundError
		if !errors.As(err, &missing) {
			t.Fatalf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(want, missing.Near); diff != "" {
			t.Errorf("near %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestGC(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	fill(t, s, files, "a", "m0.gguf")
	put := func(path string, age time.Duration) {
		path = filepath.Join(s.Dir(), path)
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, []byte("12345"), 0o600))
		at := time.Now().Add(-age)
		check(t, os.Chtimes(path, at, at))
	}
	digit := func(c string) string { return "blobs/sha256-" + strings.Repeat(c, 64) }
	put(digit("1"), 0)
	put(digit("2")+".partial", time.Hour) // to go on with
	put(digit("2")+".json", 48*time.Hour)
	put(digit("3")+".partial", 48*time.Hour)
	put(digit("3")+".json", 48*time.Hour)
	put(digit("4")+".json", 0) // of nothing
	put(digit("5"), 0)         // in use
	put("work/123/x", 0)
	put("models/local/library/gone/latest/0123456789ab/m.gguf", 0)
	put("models/local/library/a/latest/0123456789ab/m.gguf", 0)
	put("manifests/local/library/.a.partial", 0)
	var h holding
	ok, err := s.hold(t.Context(), &h, File{Digest: "sha256:" + strings.Repeat("5", 64), Size: 5})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	w, err := s.NewWork(t.Context())
	check(t, err)

	want := []string{
		digit("1"), digit("3") + ".partial", digit("4") + ".json", "manifests/local/library/.a.partial",
		"models/local/library/a/latest/0123456789ab", "models/local/library/gone/latest/0123456789ab", "work/123",
	}
	for _, dry := range []bool{true, false} {
		removed, err := s.GC(t.Context(), GCOptions{DryRun: dry, Partial: 24 * time.Hour})
		check(t, err)
		var got []string
		for _, r := range removed {
			rel, err := filepath.Rel(s.Dir(), r.Path)
			check(t, err)
			got = append(got, rel)
			if _, err := os.Stat(r.Path); errors.Is(err, fs.ErrNotExist) == dry {
				t.Errorf("dry run %v: %s: %v", dry, r.Path, err)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("dry run %v: removed (-want +got):\n%s", dry, diff)
		}
	}
	h.close()
	check(t, w.Close())
	_, err = s.GC(t.Context(), GCOptions{})
	check(t, err)
	if n := blobs(t, s); n != 2 {
		t.Errorf("%d blobs, want those of the model", n)
	}
	_, err = s.Resolve("a")
	check(t, err)
}

// TestDamagedManifest checks that a manifest that cannot be trusted is named, and
// that nothing is collected meanwhile.
func TestDamagedManifest(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	fill(t, s, files, "a", "m0.gguf", "b", "m1.gguf")
	n, err := ParseName("b")
	check(t, err)
	path := s.manifestPath(n)
	sound, err := os.ReadFile(path)
	check(t, err)
	for _, tt := range []struct{ name, from, to, want string }{
		{"no JSON", "{", "[", "invalid character"},
		{"cut", string(sound[20:]), "", "unexpected end"},
		{"version", `"version": 1`, `"version": 2`, "version 2, this program reads 1"},
		{"another name", `"b:latest"`, `"c:latest"`, "it is of c:latest"},
		{"a name that is none", `"b:latest"`, `"../b"`, "model name"},
		{"a path as file name", `"m1.gguf"`, `"../../m1.gguf"`, `file name "../../m1.gguf"`},
		{"a path as digest", `"sha256:`, `"sha256:../../`, "digest"},
		{"role", `"role": "model"`, `"role": "x"`, "no file of the model"},
		{"parameter", `"params": {}`, `"params": {"top_p": 7}`, "parameter top_p is 7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bad := strings.Replace(string(sound), tt.from, tt.to, 1)
			if bad == string(sound) {
				t.Fatalf("nothing replaced in %s", sound)
			}
			check(t, os.WriteFile(path, []byte(bad), 0o600))
			_, err := s.Resolve("b")
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			models, err := s.List()
			if err == nil || len(models) != 1 || models[0].Name != "a:latest" {
				t.Errorf("list %v, %v", models, err)
			}
			if removed, err := s.GC(t.Context(), GCOptions{}); err == nil || removed != nil {
				t.Errorf("collection %v, %v", removed, err)
			}
		})
	}
	check(t, s.Delete("b"))
	_, err = s.GC(t.Context(), GCOptions{})
	check(t, err)
	_, err = s.Resolve("a")
	check(t, err)
}

func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(path, nil, 0o600))
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path+", is a file; set INKLING_HOME") {
		t.Errorf("error %v", err)
	}
}
