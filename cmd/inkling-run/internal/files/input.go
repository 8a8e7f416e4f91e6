// Package files reads what a command line names, prompts and files, each within a bound,
// and writes files that are there as a whole or not at all.
package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
)

// Read reads a file of the command line, maxInput bytes at most; "-" is
// standard input.
func Read(path string, stdin io.Reader) (name string, data []byte, err error) {
	if path == "-" {
		if stdin == nil || terminal.Is(stdin) {
			return "", nil, usage.Errorf("standard input is a terminal; want a pipe or a file")
		}
		data, err = ReadBounded("standard input", stdin)
		return "standard input", data, err
	}
	f, err := openInput(path)
	if err != nil {
		return path, nil, err
	}
	defer f.Close()
	data, err = ReadBounded(path, f)
	return path, data, err
}

// openInput opens a file to read it to its end. It refuses named pipes, which may
// wait for ever for somebody who writes, but not /dev/fd/N, as shells name one
// that somebody writes to: <(command).
func openInput(path string) (*os.File, error) {
	st, err := os.Stat(path)
	if err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a folder, want a file", path)
	}
	passed := strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")
	if err == nil && !passed {
		if err := WantRegular(path, st); err != nil {
			return nil, err
		}
	}
	return os.Open(path)
}

// WantRegular is an error for what is no ordinary file.
func WantRegular(path string, st fs.FileInfo) error {
	what := "a device or a socket"
	switch mode := st.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	}
	return fmt.Errorf("%s is %s, want a file", path, what)
}

// Write writes a file that is there as a whole or not at all.
func Write(path string, write func(io.Writer) error) (err error) {
	partial := path + ".partial"
	f, err := os.Create(partial)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(partial)
		}
	}()
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(partial, path)
	}
	return err
}
