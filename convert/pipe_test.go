//go:build unix

package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPipes: a pipe in place of a file is refused, not waited for.
func TestPipes(t *testing.T) {
	for _, name := range []string{"config.json", "model.safetensors", "model.safetensors.index.json"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if name != "config.json" {
				if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"model_type":"inkling_mm_model"}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				src, _, err := openSource(dir, true)
				if err == nil {
					src.Close()
				}
				done <- err
			}()
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("error %v, want one that names %s", err, name)
				}
			case <-time.After(5 * time.Second):
				t.Error("waits for the other end")
			}
		})
	}
}
