package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCreate(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	temperature := 0.5
	var seen []string
	m, err := s.Create(t.Context(), "Me/Mine", &Modelfile{
		From: []From{{Ref: "m0.gguf"}, {Ref: "./mmproj-F16.gguf"}}, Dir: files,
		Params: Params{Temperature: &temperature, Stop: []string{"x"}}, System: "Be brief.", License: []string{"MIT"},
	}, func(p Progress) { seen = append(seen, p.Status) })
	check(t, err)
	seen = slices.Compact(seen)
	want := []string{"copying m0.gguf", "copying mmproj-F16.gguf", "copying mmproj-F16.gguf", "reading the headers", "writing manifest"}
	if diff := cmp.Diff(slices.Compact(want), seen); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	got, err := s.Resolve("me/mine:LATEST")
	check(t, err)
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("resolved (-created +resolved):\n%s", diff)
	}
	if got.Name != "Me/Mine:latest" || *got.Params.Temperature != 0.5 || got.System != "Be brief." || got.Source != filepath.Join(files, "m0.gguf") {
		t.Errorf("model %+v", got)
	}
	data, err := os.ReadFile(filepath.Join(files, "m0.gguf"))
	check(t, err)
	wantFile(t, got.Model, data)
	if got.MMProj == "" || filepath.Dir(got.MMProj) != filepath.Dir(got.Model) {
		t.Errorf("projector at %q", got.MMProj)
	}
	// The projector was given twice, by its place and by name, and is there once.
	if got.Size != int64(len(data))+12_000+fileOverhead(t, files) {
		t.Errorf("size %d", got.Size)
	}
	check(t, filepath.WalkDir(s.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err == nil && st.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", path, st.Mode().Perm(), want)
		}
		return err
	}))
}

// fileOverhead is what the projector has beside its tensor.
func fileOverhead(t *testing.T, files string) int64 {
	st, err := os.Stat(filepath.Join(files, "mmproj-F16.gguf"))
	check(t, err)
	return st.Size() - 12_000
}

func TestCreateInherits(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	half, one, ten := 0.5, 1.0, 10
	_, err := s.Create(t.Context(), "base", &Modelfile{
		From: []From{{Ref: "m0.gguf"}}, Dir: files, System: "base", Template: "{{ x }}",
		Params: Params{Temperature: &half, NumCtx: &ten, Stop: []string{"a"}}, Messages: []Message{{"user", "hi"}},
	}, nil)
	check(t, err)
	m, err := s.Create(t.Context(), "child", &Modelfile{From: []From{{Ref: "base"}}, System: "child", Params: Params{Temperature: &one, Stop: []string{"b", "c"}}}, nil)
	check(t, err)
	got := content{Params: m.Params, System: m.System, Template: m.Template, Messages: m.Messages}
	want := content{Params: Params{Temperature: &one, NumCtx: &ten, Stop: []string{"b", "c"}}, System: "child", Template: "{{ x }}", Messages: []Message{{"user", "hi"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("child (-want +got):\n%s", diff)
	}
	if n := blobs(t, s); n != 2 {
		t.Errorf("%d blobs, want 2", n)
	}
	// The base may go: the child has the files too.
	check(t, s.Delete("base"))
	_, err = s.Resolve("child")
	check(t, err)
}

func TestCreateErrors(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	check(t, os.WriteFile(filepath.Join(files, "text.gguf"), []byte("not a model"), 0o600))
	check(t, os.Mkdir(filepath.Join(files, "empty"), 0o700))
	check(t, os.Symlink("/dev/null", filepath.Join(files, "device.gguf")))
	for _, tt := range []struct {
		name string
		from []From
		dir  string
		want string
	}{
		{"nothing", nil, files, "no FROM"},
		{"no file", []From{{Ref: "./none.gguf", Line: 3}}, files, "line 3: FROM ./none.gguf: stat "},
		{"no model", []From{{Ref: "none"}}, files, "none:latest: no such model in the store"},
		{"not GGUF", []From{{Ref: "text.gguf"}}, files, "text.gguf: gguf: "},
		{"projector alone", []From{{Ref: "mmproj-F16.gguf"}}, files, "mmproj-F16.gguf: it is a projector, want a model"},
		{"two models", []From{{Ref: "m0.gguf"}, {Ref: "m1.gguf"}}, files, "a second model"},
		{"model after model", []From{{Ref: "m0.gguf"}, {Ref: "none"}}, files, "only the first FROM can be a model of the store"},
		{"folder with several", []From{{Ref: "."}}, files, "which of its models is not clear; there is device, m0, m1, text"},
		{"empty folder", []From{{Ref: "./empty"}}, files, "no GGUF file of a model"},
		{"device", []From{{Ref: "device.gguf"}}, files, "is not a regular file"},
		{"paths are off", []From{{Ref: filepath.Join(files, "m0.gguf")}}, "", "model name"},
		{"no blob", []From{{Ref: "sha256:" + strings.Repeat("0", 64)}}, "", "no such blob in the store"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Create(t.Context(), "new", &Modelfile{From: tt.from, Dir: tt.dir}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if list := names(t, s); list != nil {
		t.Errorf("models %q", list)
	}
	if n := blobs(t, s); n != 0 {
		t.Errorf("%d blobs are left of models that could not be made", n)
	}
}

// A blob that was there before stays when a model of it cannot be made.
func TestCreateErrorKeepsBlobs(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	_, err := s.Create(t.Context(), "old", &Modelfile{From: []From{{Ref: "m0.gguf"}}, Dir: files}, nil)
	check(t, err)
	before := blobs(t, s)
	if _, err := s.Create(t.Context(), "new", &Modelfile{From: []From{{Ref: "m0.gguf"}, {Ref: "m1.gguf"}}, Dir: files}, nil); err == nil {
		t.Error("a model of two models was made")
	}
	if n := blobs(t, s); n != before {
		t.Errorf("%d blobs, want the %d of before", n, before)
	}
}

func TestCreateNeedsSpace(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	s.free = func(string) (int64, bool) { return 10, true }
	_, err := s.Create(t.Context(), "new", &Modelfile{From: []From{{Ref: "m0.gguf"}}, Dir: files}, nil)
	var space *SpaceError
	if err != nil && !errors.As(err, &space) {
		t.Errorf("error %v, want a SpaceError, or none where the disk shares data", err)
	}
}

func TestPutBlob(t *testing.T) {
	s, files := openStore(t), someFiles(t)
	var from []From
	for _, name := range []string{"mmproj-F16.gguf", "m0.gguf"} { // in any order
		data, err := os.ReadFile(filepath.Join(files, name))
		check(t, err)
		digest := "sha256:" + hexDigest(data)
		if there, err := s.HasBlob(digest); err != nil || there {
			t.Errorf("there before: %v, %v", there, err)
		}
		check(t, s.PutBlob(t.Context(), digest, strings.NewReader(string(data))))
		if there, err := s.HasBlob(digest); err != nil || !there {
			t.Errorf("not there: %v", err)
		}
		from = append(from, From{Ref: "@" + digest, Name: name})
	}
	m, err := s.Create(t.Context(), "put", &Modelfile{From: from}, nil)
	check(t, err)
	if filepath.Base(m.Model) != "m0.gguf" || filepath.Base(m.MMProj) != "mmproj-F16.gguf" {
		t.Errorf("model %s, projector %s", m.Model, m.MMProj)
	}
	if err := s.PutBlob(t.Context(), "sha256:"+strings.Repeat("0", 64), strings.NewReader("x")); !errors.Is(err, ErrDigest) {
		t.Errorf("error %v, want ErrDigest", err)
	}
	if _, err := s.HasBlob("sha256:../../x"); err == nil {
		t.Error("no error for a digest that is none")
	}
}

// TestSplitFolder makes a model of a folder with a split one.
func TestSplitFolder(t *testing.T) {
	s, dir := openStore(t), t.TempDir()
	for i := range 2 {
		data := makeGGUF(t, "inkling", 100, 20+i, "split.no", uint16(i), "split.count", uint16(2), "split.tensors.count", int32(2))
		check(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("big-%05d-of-00002.gguf", i+1)), data, 0o600))
	}
	for name, ref := range map[string]string{"folder": ".", "file": "big-00002-of-00002.gguf"} {
		m, err := s.Create(t.Context(), name, &Modelfile{From: []From{{Ref: ref}}, Dir: dir}, nil)
		check(t, err)
		if filepath.Base(m.Model) != "big-00001-of-00002.gguf" || len(m.Files) != 2 || m.Details.Parameters != 200 {
			t.Errorf("%s: model %s of %d files with %d parameters", name, m.Model, len(m.Files), m.Details.Parameters)
		}
	}
	check(t, os.Remove(filepath.Join(dir, "big-00002-of-00002.gguf")))
	_, err := s.Create(t.Context(), "x", &Modelfile{From: []From{{Ref: "."}}, Dir: dir}, nil)
	if err == nil || !strings.Contains(err.Error(), "part 2 of 2 is missing") {
		t.Errorf("error %v", err)
	}
}
