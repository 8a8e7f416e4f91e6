package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
)

// maxInput bounds what is read from standard input and from a file of messages,
// which may hold pictures as data URLs.
const maxInput = 64 << 20

// waitNote is after how long the program says that it waits for standard input.
const waitNote = 3 * time.Second

// ReadPrompt is the prompt of a command line: what comes by standard input, and
// then the arguments. The text of a pipe or file loses its line end, unless it is
// taken as it is.
//
// Where there are arguments, standard input counts only if it is a pipe or a
// file: a program started by another one may have been left a descriptor that
// never ends.
func ReadPrompt(args []string, stdin io.Reader, stderr io.Writer, asIs bool) (string, error) {
	text := strings.Join(args, " ")
	if !hasInput(stdin, len(args) > 0) {
		return text, nil
	}
	note := time.AfterFunc(waitNote, func() {
		fmt.Fprintln(stderr, "note: waiting for the end of standard input (</dev/null if there is nothing in it)")
	})
	defer note.Stop()
	input, err := ReadBounded("standard input", stdin)
	if err != nil {
		return "", err
	}
	if asIs {
		return string(input) + text, nil
	}
	before := strings.TrimRight(string(input), "\r\n")
	if before == "" || text == "" {
		return before + text, nil
	}
	return before + "\n" + text, nil
}

// hasInput reports whether standard input is to be read.
func hasInput(stdin io.Reader, haveArgs bool) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return stdin != nil
	}
	st, err := f.Stat()
	if err != nil || terminal.Is(f) {
		return false
	}
	return !haveArgs || st.Mode().IsRegular() || st.Mode()&fs.ModeNamedPipe != 0
}

// ReadBounded reads all of r, maxInput bytes at most. name is for errors.
func ReadBounded(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("%s: more than %d MiB", name, maxInput>>20)
	}
	return data, nil
}
