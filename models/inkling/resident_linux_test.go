package inkling

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/models"
)

// TestCopiedOnce: of weights that are copied the file's pages do not stay in memory as well.
func TestCopiedOnce(t *testing.T) {
	path := tinyFiles(t).Model
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	be := newBackend(t)
	f := openGGUF(t, path)
	before := residentFiles(t)
	m, err := models.Open(f, models.Params{Backend: be, NoMmap: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if grown := residentFiles(t) - before; grown > st.Size()/4 {
		t.Errorf("%d MB of files became resident with a file of %d MB", grown>>20, st.Size()>>20)
	}
}

// residentFiles is the part of the process's resident memory that files back, in bytes.
func residentFiles(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(status), "RssFile:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); !found || err != nil {
		t.Fatalf("no RssFile in /proc/self/status: %v", err)
	}
	return kib << 10
}
