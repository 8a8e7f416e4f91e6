// Command convert-inkling converts a checkpoint in safetensors form to GGUF: the
// text model, and beside it the towers for pictures and sound as mmproj file and the
// layers for multi-token prediction as mtp file.
//
// Exit status: 0 done, 1 an error, 2 wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	_ "github.com/inkling-go/inkling/convert/inkling"
	_ "github.com/inkling-go/inkling/convert/kimik25"
)

const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

func main() {
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments; it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newApp(stdout, stderr).RunContext(ctx, interspersed(args))
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "convert-inkling: %s (--help shows the usage)\n", oneLine(err))
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "convert-inkling: interrupted; --resume goes on from here")
		return exitInterrupted
	default:
		fmt.Fprintf(stderr, "convert-inkling: %s%s\n", oneLine(err), hint(err))
	}
	return exitError
}

// oneLine joins the lines of an error: several that happened together are one each.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
