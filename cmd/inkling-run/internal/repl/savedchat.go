package repl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/conversation"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/internal/chat"
)

// save writes the conversation to a file. Media stay where they are and are named
// by their paths.
func (t *Chat) save(ctx context.Context, argument string) error {
	path := typedPath(argument)
	err := t.mayWrite(ctx, path)
	if err == nil {
		err = t.writeFile(path)
	}
	switch {
	case errors.Is(err, interrupt.Err):
		return err
	case err != nil:
		t.complain(err)
	default:
		t.say("%d messages are in %s", len(t.conv.Messages), path)
	}
	return nil
}

// errNotSaved is the end of /save if the person does not want it any more.
var errNotSaved = errors.New("not saved")

// mayWrite asks before a file is written over.
func (t *Chat) mayWrite(ctx context.Context, path string) error {
	if path == "" {
		return errors.New("/save: no file")
	}
	if len(t.conv.Messages) == 0 {
		return errors.New("/save: there are no messages yet")
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.IsDir():
		return fmt.Errorf("%s is a folder, want a file", path)
	}
	if err := files.WantRegular(path, st); err != nil {
		return err
	}
	t.say("%s is there already", terminal.OneLine(path))
	yes, err := t.Lines.Confirm(ctx, "Write over it?")
	switch {
	case errors.Is(err, interrupt.Err):
		return err
	case err != nil:
		fmt.Fprintln(t.Stdout) // the question's line
		return errNotSaved
	case !yes:
		return errNotSaved
	}
	return nil
}

// files.Write writes the conversation; the file is whole or not there.
func (t *Chat) writeFile(path string) error {
	conv, err := conversation.Rebased(t.conv, ".")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := conversation.Write(&b, conv); err != nil {
		return err
	}
	partial := path + ".partial"
	if err := os.WriteFile(partial, b.Bytes(), 0o600); err != nil { // it may be private
		return err
	}
	return os.Rename(partial, path)
}

// loadFile goes on with a conversation of a file.
func (t *Chat) loadFile(_ context.Context, argument string) error {
	if argument == "" {
		fmt.Fprintln(t.Stderr, "/load: no file")
		return nil
	}
	conv, err := readSaved(typedPath(argument))
	if err != nil {
		t.complain(err)
		return nil
	}
	if conv.Tools == nil {
		conv.Tools = t.beginning.Tools
	}
	t.conv, t.pending, t.Used = conv, nil, 0
	t.say("%d messages; /show messages prints them", len(conv.Messages))
	return nil
}

// readSaved reads a conversation; paths in it count from the file's folder.
func readSaved(path string) (chat.Conversation, error) {
	name, data, err := files.Read(path, nil)
	if err != nil {
		return chat.Conversation{}, err
	}
	conv, err := chat.ParseMessages(data)
	if err == nil && len(conv.Messages) == 0 {
		err = errors.New("no messages")
	}
	if err != nil {
		return chat.Conversation{}, fmt.Errorf("%s: %w", name, err)
	}
	return conversation.Rebased(conv, filepath.Dir(path))
}
