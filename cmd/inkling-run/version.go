package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/binding"
)

// versionCommand says what the program is made of.
func versionCommand() *cli.Command {
	return &cli.Command{
		Name:            "version",
		Usage:           "print the version of the program, of Go and of ggml",
		UsageText:       "inkling-run version [--json]",
		HideHelpCommand: true,
		Flags:           []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print one JSON object"}},
		OnUsageError:    onUsageError,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("version takes no arguments")
			}
			b := buildInfo()
			if c.Bool("json") {
				return encodeJSON(c.App.Writer, b)
			}
			_, err := fmt.Fprintf(c.App.Writer, "%s\nplatform %s, SIMD %s\n", versionLine(), b.Platform, strings.Join(b.SIMD, " "))
			return err
		},
	}
}

// build is what the program was made of, in the form of --json.
type build struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit,omitempty"`
	Modified bool     `json:"modified,omitempty"` // built from changed files
	Go       string   `json:"go"`
	GGML     string   `json:"ggml"`
	Platform string   `json:"platform"`
	SIMD     []string `json:"simd"`
}

// buildInfo reads what the linker noted.
func buildInfo() build {
	b := build{
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

// version is set by -ldflags "-X main.version=...", and else taken from the
// build: the module's version, which names the commit.
var version string

func versionLine() string {
	b := buildInfo()
	return fmt.Sprintf("inkling-run %s, %s, ggml from %s", b.Version, b.Go, b.GGML)
}
