package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of the history.
const (
	historyLines = 1000
	historyLine  = 4096    // bytes; longer lines are not kept
	historyBytes = 4 << 20 // of the file
)

// History is what was typed in chats, for the arrow keys: term.History over a
// file of one line each, to which chats that run at once append.
type History struct {
	Path   string // empty: nothing is written
	lines  []string
	paused bool // what is typed is no message
}

// OpenHistory reads the history; a file that is not there is an empty one. With
// an error comes a history that is kept in memory only.
func OpenHistory(path string) (*History, error) {
	if path == "" {
		return &History{}, nil
	}
	lines, err := readHistory(path)
	if err != nil {
		return &History{}, fmt.Errorf("history: %w", err)
	}
	h := &History{Path: path, lines: lines}
	if over := len(lines) - historyLines; over > 0 {
		h.lines = lines[over:]
		if err := h.rewrite(); err != nil {
			return &History{lines: h.lines}, fmt.Errorf("history: %w", err)
		}
	}
	return h, nil
}

func readHistory(path string) ([]string, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	scan := bufio.NewScanner(io.LimitReader(f, historyBytes))
	for scan.Scan() {
		if line := Harmless(scan.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, scan.Err()
}

// rewrite puts the lines in place of the file.
func (h *History) rewrite() error {
	partial := h.Path + ".partial"
	if err := os.WriteFile(partial, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(partial, h.Path)
}

// Add keeps a line. That it can not be written is no reason to stop a chat.
func (h *History) Add(line string) {
	line = strings.TrimSpace(Harmless(line))
	if h.paused || line == "" || len(line) > historyLine || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if len(h.lines) > historyLines {
		h.lines = h.lines[1:]
	}
	if h.Path == "" {
		return
	}
	if err := h.write(line); err != nil {
		h.Path = ""
	}
}

// write appends a line to the file.
func (h *History) write(line string) error {
	if err := os.MkdirAll(filepath.Dir(h.Path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// Len is the number of lines.
func (h *History) Len() int { return len(h.lines) }

// At returns a line, counted from the last one.
func (h *History) At(i int) string { return h.lines[len(h.lines)-1-i] }
