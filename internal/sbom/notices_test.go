package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriteNotices: the test's own program is made of Go at least. What go test builds
// does not list modules; make dist has them.
func TestWriteNotices(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeNotices(&b, []string{self}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nGo go1", "Redistribution and use in source and binary forms"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the notices lack %q", want)
		}
	}
}

func TestTerms(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"one", []string{"LICENSE", "main.go", "license_test.go"}, []string{"LICENSE"}},
		{"several", []string{"LICENSE.md", "NOTICE", "README.md"}, []string{"LICENSE.md", "NOTICE"}},
		{"of a part", []string{"UNLICENSE", "ml/backend/ggml/ggml/LICENSE"}, []string{"UNLICENSE", "ml/backend/ggml/ggml/LICENSE"}},
		{"none", []string{"README.md"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range tt.files {
				path := filepath.Join(dir, f)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(f), 0o600); err != nil { // each says its name
					t.Fatal(err)
				}
			}
			got, err := terms(dir)
			if (err != nil) != (tt.want == nil) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("terms (-want +got):\n%s", diff)
			}
		})
	}
}
