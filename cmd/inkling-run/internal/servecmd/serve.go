// Package servecmd has the server's command and those that ask a running server: serve, ps
// and stop.
package servecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/server"
	"github.com/inkling-go/inkling/internal/server/page"
)

const serveDescription = `Answers other programs over HTTP, with the routes of OpenAI (/v1/chat/completions,
/v1/completions, /v1/embeddings, /v1/models), Ollama (/api/...) and Anthropic
(/v1/messages). Models are those of the store, by name, and the files that are
named here. One is loaded by the first request for it.

The address is that of --host and --port, or of the environment variable
INKLING_HOST, or else OLLAMA_HOST, which may have a port: 0.0.0.0:8080.

Pictures, sounds and videos come inside of requests. Those that a request gives
an http(s) address of are fetched from public addresses as long as the server
answers this machine alone; else --allow-media-host names the hosts.

On SIGTERM or ctrl-C the server takes no more requests and ends those at work; a
second one stops at once.

Exit status: 0 done, 1 an error, as an address in use, 2 wrong usage.`

// Serve answers other programs.
func Serve() *cli.Command {
	return &cli.Command{
		Name:            "serve",
		Usage:           "answer other programs: the APIs of OpenAI, Ollama and Anthropic",
		UsageText:       "inkling-run serve [MODEL...] [options]",
		Description:     serveDescription,
		HideHelpCommand: true,
		Flags:           serveFlags(),
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			o, err := serveOptionsFrom(c)
			if err != nil {
				return err
			}
			return o.serve(c.Context)
		},
	}
}

// Bounds of a connection that no request sets.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// serve listens until a signal or the context ends it.
func (o *serveOptions) serve(ctx context.Context) error {
	ln, err := net.Listen("tcp", o.addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is in use, perhaps by another inkling-run or by Ollama: --port takes another: %w", o.addr, err)
		}
		return err
	}
	defer ln.Close()
	o.server.Loopback = isLoopback(ln.Addr())
	o.server.Media.Fetch = o.server.Loopback
	if o.server.Page, err = page.Handler(); err != nil {
		return err
	}
	s, err := server.New(o.server)
	if err != nil {
		return err
	}
	defer s.Close()
	if w := binding.Warning(); w != "" {
		o.log.Warn(w)
	}
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(o.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(ln) }()
	fmt.Fprintf(o.stderr, "listening on http://%s\n", ln.Addr())
	return o.untilSignal(ctx, s, h, failed)
}

// untilSignal waits for the end, and drains.
func (o *serveOptions) untilSignal(ctx context.Context, s *server.Server, h *http.Server, failed <-chan error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	select {
	case err := <-failed:
		return err
	case <-signals:
	case <-ctx.Done():
		// SIGTERM ends the context too, and has come here as well.
		select {
		case <-signals:
		case <-time.After(100 * time.Millisecond):
		}
	}
	o.log.Info("draining", "timeout", o.drain)
	s.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), o.drain)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := h.Shutdown(ctx); err != nil {
		o.log.Warn("requests are cut off", "error", err)
		s.Close() // ends their contexts, so that they tell their clients
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if h.Shutdown(ctx) != nil {
			return h.Close()
		}
	}
	return nil
}

// isLoopback reports whether only this machine reaches an address.
func isLoopback(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && ap.Addr().Unmap().IsLoopback()
}
