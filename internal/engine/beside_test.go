package engine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindProjector(t *testing.T) {
	for _, c := range []struct {
		name, model string
		files       []string
		want        string
		ambiguous   bool
	}{
		{"none", "m-Q4_K_M.gguf", nil, "", false},
		{"same type", "m-F16.gguf", []string{"mmproj-m-F16.gguf", "mmproj-m-BF16.gguf"}, "mmproj-m-F16.gguf", false},
		{"other type", "m-Q4_K_M.gguf", []string{"mmproj-m-F16.gguf", "mmproj-other-F16.gguf"}, "mmproj-m-F16.gguf", false},
		{"the only one", "Inkling-UD-IQ3_XXS-00001-of-00003.gguf", []string{"mmproj-F16.gguf"}, "mmproj-F16.gguf", false},
		{"a stranger", "m-Q4_K_M.gguf", []string{"mmproj-other-F16.gguf"}, "", false},
		{"name in front", "Inkling-Small-UD-IQ3_XXS-00001-of-00003.gguf", []string{"mmproj-Inkling-Small-F16.gguf", "mmproj-Inkling-F32.gguf.txt"}, "mmproj-Inkling-Small-F16.gguf", false},
		{"without a name", "m.gguf", []string{"mmproj-model-f16.gguf"}, "mmproj-model-f16.gguf", false},
		{"two types", "m-Q4_K_M.gguf", []string{"mmproj-m-F16.gguf", "mmproj-m-BF16.gguf"}, "mmproj-m-BF16.gguf", false},
		{"two without a name", "m-Q4_K_M.gguf", []string{"mmproj-F16.gguf", "mmproj-q8_0.gguf"}, "mmproj-F16.gguf", false},
		{"two of one type", "m-Q4_K_M.gguf", []string{"mmproj-m-F16.gguf", "mmproj-F16.gguf"}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "with [brackets]")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, f := range append(c.files, c.model) {
				if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := FindProjector(filepath.Join(dir, c.model))
			if c.ambiguous != (err != nil) {
				t.Fatalf("error %v", err)
			}
			if want := c.want; got != "" {
				got = filepath.Base(got)
				if got != want {
					t.Errorf("found %q, want %q", got, want)
				}
			} else if want != "" {
				t.Errorf("found nothing, want %q", want)
			}
		})
	}
}

// TestFindProjectorOfLink: the projector of a link lies beside what it points to.
func TestFindProjectorOfLink(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"m-F16.gguf", "mmproj-m-F16.gguf"} {
		if err := os.WriteFile(filepath.Join(there, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link.gguf")
	if err := os.Symlink(filepath.Join(there, "m-F16.gguf"), link); err != nil {
		t.Fatal(err)
	}
	if got, err := FindProjector(link); err != nil || filepath.Base(got) != "mmproj-m-F16.gguf" {
		t.Errorf("found %q, %v", got, err)
	}
}
