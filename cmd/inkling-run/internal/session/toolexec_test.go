package session

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/inkling-go/inkling/internal/chat"
)

func TestToolRun(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	call := chat.ToolCall{Name: "f", Arguments: json.RawMessage(`{"x":1}`)}
	for _, tc := range []struct {
		name, cmd, want string
	}{
		{"input", "cat", `{"name":"f","arguments":{"x":1}}`},
		{"lines", "echo a; echo b", "a\nb"},
		{"nothing", "true", ""},
		{"input that is not read", "echo a", "a"},
		{"failure", "echo a; echo b >&2; exit 2", "error: exit status 2: b"},
		{"failure that says nothing", "exit 2", "error: exit status 2"},
		{"failure on the wrong stream", "echo a; exit 1", "error: exit status 1: a"},
		{"no such command", "exec /nowhere/at-all 2>/dev/null", "error: exit status 127"},
		{"bytes that are no text", `printf 'a\377b'`, "a\uFFFDb"},
		{"too much", "yes | head -c 1000000", strings.Repeat("y\n", maxToolOutput/2-1) + "y\n(cut off after 64 KiB)"},
		{"a process that is left behind", "sleep 600 & echo a", "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ToolOptions{Exec: tc.cmd, Timeout: time.Minute}.run(context.Background(), call)
			if err != nil || got != tc.want {
				t.Errorf("%.200q, %v, want %.200q", got, err, tc.want)
			}
		})
	}
	got, err := ToolOptions{Exec: "cat", Timeout: time.Minute}.run(context.Background(), chat.ToolCall{Name: "f", Arguments: json.RawMessage("{")})
	if err != nil || got != "error: the arguments are not JSON" {
		t.Errorf("without JSON: %q, %v", got, err)
	}
	got, err = ToolOptions{Exec: "sleep 600", Timeout: time.Millisecond}.run(context.Background(), call)
	if err != nil || got != "error: no result after 1ms" {
		t.Errorf("after the time: %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (ToolOptions{Exec: "sleep 600", Timeout: time.Minute}).run(ctx, call); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
