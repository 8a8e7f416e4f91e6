package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
)

// Bounds of what a tool may print.
const (
	maxToolOutput = 64 << 10
	maxToolErrors = 2 << 10
)

// ToolOptions say who carries out calls of tools.
type ToolOptions struct {
	Exec    string // shell command; empty: nobody, or the person in a chat
	Yes     bool   // without asking
	Rounds  int    // answers with calls before one without
	Timeout time.Duration
}

// run carries out a call by the command and returns what the model is told: what
// the command prints, or "error: " and why there is nothing. The error is that of
// the context.
func (t ToolOptions) run(ctx context.Context, call chat.ToolCall) (string, error) {
	in, err := json.Marshal(struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{call.Name, call.Arguments})
	if err != nil {
		return "error: the arguments are not JSON", nil
	}
	limited, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, "sh", "-c", t.Exec)
	ownGroup(cmd)
	cmd.WaitDelay = time.Second // for pipes that a process in the background holds open
	stdout, stderr := boundedBuffer{limit: maxToolOutput}, boundedBuffer{limit: maxToolErrors}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(in, '\n')), &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		return fmt.Sprintf("error: no result after %s", t.Timeout), nil
	case errors.As(err, &exit):
		why := strings.TrimSpace(stderr.text())
		if why == "" {
			why = strings.TrimSpace(stdout.text())
		}
		return strings.TrimSuffix(fmt.Sprintf("error: %s: %s", exit, why), ": "), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return "error: " + err.Error(), nil
	}
	text := strings.TrimRight(stdout.text(), "\r\n")
	if stdout.over {
		text += fmt.Sprintf("\n(cut off after %d KiB)", maxToolOutput>>10)
	}
	return text, nil
}

// boundedBuffer keeps the beginning of what is written to it.
type boundedBuffer struct {
	limit int
	buf   bytes.Buffer
	over  bool // there was more
}

// Write never fails: the rest of what a command prints is read and dropped, so
// that it does not wait.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.buf.Len()
	b.over = b.over || len(p) > room
	b.buf.Write(p[:min(len(p), room)])
	return len(p), nil
}

// text is what was kept, as UTF-8.
func (b *boundedBuffer) text() string { return strings.ToValidUTF8(b.buf.String(), "\uFFFD") }
