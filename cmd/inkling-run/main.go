// Command inkling-run runs models: it answers prompts about text, pictures,
// sound and video, holds a chat, and shows what is in a GGUF file and what the
// model gets of media.
//
// Exit status: 0 done, 1 an error, 2 wrong usage, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	_ "github.com/inkling-go/inkling/convert/inkling"
	_ "github.com/inkling-go/inkling/convert/kimik25"
	_ "github.com/inkling-go/inkling/models/inkling"
	_ "github.com/inkling-go/inkling/models/kimik25"
)

const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

func main() {
	os.Exit(run(os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments; it returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	app := newApp(stdin, stdout, stderr)
	err := app.RunContext(ctx, interspersed(args, app.Commands))
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "inkling-run: %s\n", terminal.OneLine(err.Error()))
	var wrong *usage.Error
	var spec *binding.SpecError
	switch {
	case errors.As(err, &wrong), errors.As(err, &spec):
		return exitUsage
	case errors.Is(err, interrupt.Err):
		return exitInterrupted
	}
	return exitError
}
