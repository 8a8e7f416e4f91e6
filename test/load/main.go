// Command load puts a running server under load and looks at what becomes of it.
//
//	load bench   many streams for some time, clients that go away at random, and a server that is killed
//	load soak    all kinds of requests, good and bad, over all APIs, and what they leave behind
//	load faults  idle and slow connections by the thousand, and a signal while streams run
//
// The server is a process of its own, inkling-run serve, with the trained
// checkpoint of testdata in float32. Every greedy answer must be the one that the
// reference gives alone. The exit status is 1 if anything was wrong.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	bin       string // folder with both tools
	testdata  string
	duration  time.Duration
	streams   int
	parallel  int
	seed      uint64
	serveArgs []string // further options of serve
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	mode := ""
	if len(args) > 0 {
		mode, args = args[0], args[1:]
	}
	var o options
	flags := flag.NewFlagSet("load "+mode, flag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "bin", "folder of convert-inkling and inkling-run")
	flags.StringVar(&o.testdata, "testdata", "testdata", "folder of the checkpoint and its evaluation set")
	flags.DurationVar(&o.duration, "duration", 2*time.Minute, "how long")
	flags.IntVar(&o.streams, "streams", 64, "clients at once")
	flags.IntVar(&o.parallel, "parallel", 8, "--parallel of the server")
	flags.Uint64Var(&o.seed, "seed", 1, "of the order of requests")
	serve := flags.String("serve", "", "further `options` of serve, separated by spaces")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.serveArgs = strings.Fields(*serve)
	load := map[string]func(context.Context, *options, *server) error{"bench": bench, "soak": soak, "faults": faults}[mode]
	if load == nil {
		return fmt.Errorf("load %q: want bench, soak or faults", mode)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := newServer(ctx, &o)
	if err != nil {
		return err
	}
	defer s.close()
	return load(ctx, &o, s)
}
