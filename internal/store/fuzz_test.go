package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzManifest reads manifests: an error, or a model whose files lie where they may.
func FuzzManifest(f *testing.F) {
	const place = "hf.co/org/repo/latest"
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, s := range []string{
		`{"version":1,"name":"hf.co/org/repo:latest","modified":"2026-01-02T03:04:05Z","details":{},"files":[{"name":"a.gguf","role":"model","digest":"` + digest + `","size":5},{"name":"mmproj.gguf","role":"mmproj","digest":"` + digest + `","size":0}],"params":{"temperature":0.5,"stop":["x"],"num_ctx":5},"system":"s","template":"t","messages":[{"role":"user","content":"c"}],"license":["l"]}`,
		`{"version":1,"name":"hf.co/org/repo","files":[{"name":"../a.gguf","role":"model","digest":"` + digest + `"}]}`,
		`{"version":2}`,
		`[`,
	} {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), "manifest") // one for each process of the fuzzer
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := readManifest(path, place)
		if err != nil {
			return
		}
		if _, err := m.digest(); err != nil {
			t.Fatal(err)
		}
		for _, file := range m.Files {
			if filepath.Base(file.Name) != file.Name || filepath.Base(file.Digest) != file.Digest {
				t.Errorf("file %q with digest %q leaves its folder", file.Name, file.Digest)
			}
		}
	})
}

// FuzzJournal reads what a download left: a journal that fits the file, or none.
func FuzzJournal(f *testing.F) {
	const size = 1000
	seed, err := json.Marshal(newJournal(size, 100))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"size":1000,"part":9223372036854775807,"done":[1]}`))
	f.Add([]byte(`{"size":1000,"part":300,"etag":"e","done":[300,5,0,100]}`))
	path := filepath.Join(f.TempDir(), "journal")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := readJournal(path, size)
		if err != nil {
			t.Fatal(err)
		}
		if j == nil {
			return
		}
		var total int64
		for i := range j.Done {
			total += j.length(i)
		}
		if total != size || j.done() < 0 || j.done() > size || (j.done() == size) != (len(j.missing()) == 0) {
			t.Errorf("%s: %d of %d bytes in %d parts", data, j.done(), total, len(j.Done))
		}
	})
}
