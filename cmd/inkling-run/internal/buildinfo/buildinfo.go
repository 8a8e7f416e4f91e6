// Package buildinfo says what the program is made of: its version, Go, ggml.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/inkling-go/inkling/binding"
)

// Info is what the program was made of, in the form of --json.
type Info struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit,omitempty"`
	Modified bool     `json:"modified,omitempty"` // built from changed files
	Go       string   `json:"go"`
	GGML     string   `json:"ggml"`
	Platform string   `json:"platform"`
	SIMD     []string `json:"simd"`
}

// Read reads what the linker noted.
func Read() Info {
	b := Info{
		Version: version, Go: runtime.Version(), GGML: binding.Source(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, SIMD: binding.Features(),
	}
	info, ok := debug.ReadBuildInfo()
	if ok && b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

// version is set by the linker (-ldflags "-X PATH.version=...", PATH being that of
// this package), and else taken from the build: the module's version, which names
// the commit.
var version string

// Line is the first line of what version prints.
func Line() string {
	b := Read()
	return fmt.Sprintf("inkling-run %s, %s, ggml from %s", b.Version, b.Go, b.GGML)
}
