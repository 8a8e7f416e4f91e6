package servecmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/buildinfo"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/server"
	"github.com/inkling-go/inkling/internal/store"
)

// serveFlags returns the options of serve.
func serveFlags() []cli.Flag {
	return append(append(flags.Device(), flags.Draft()...), []cli.Flag{
		&cli.StringFlag{Name: "host", Usage: "listen on `ADDRESS`, which may have a port", DefaultText: "INKLING_HOST, OLLAMA_HOST or 127.0.0.1"},
		&cli.StringFlag{Name: "port", Usage: "listen on `PORT`; 0 takes a free one", DefaultText: "11434"},

		&cli.StringFlag{Name: "keep-alive", Value: "5m", Usage: "keep an idle model for `TIME`: 30s, 5m, seconds, 0 for not at all, -1 for ever"},
		&cli.IntFlag{Name: "max-loaded", Value: 1, Usage: "have at most `N` models in memory"},
		&cli.IntFlag{Name: "parallel", Aliases: []string{"np"}, Value: 4, Usage: "answer `N` requests of a model at once"},
		&cli.IntFlag{Name: "queue", Value: 64, Usage: "let `N` requests of a model wait; more are refused with status 429"},
		&cli.IntFlag{Name: "cache-ram", Value: engine.DefaultCacheRAM >> 20, Usage: "keep states of earlier prompts in `MIB` of memory; 0 for none"},

		&cli.IntFlag{Name: "threads", Aliases: []string{"t"}, Usage: "compute with `N` threads", DefaultText: "one per core"},
		&cli.IntFlag{Name: "ctx-size", Aliases: []string{"c"}, Usage: "give each request room for `N` tokens of prompt and answer", DefaultText: fmt.Sprintf("the model's, at most %d", engine.DefaultContext)},
		&cli.IntFlag{Name: "batch-size", Aliases: []string{"b"}, Usage: "upper bound `N` of --ubatch-size", DefaultText: "2048"},
		&cli.IntFlag{Name: "ubatch-size", Usage: "compute `N` tokens of prompts at a time", DefaultText: "512, on CUDA up to --batch-size"},
		&cli.StringFlag{Name: "kv", Value: "f16", Usage: "`TYPE` of keys and values in the cache: f32, f16, bf16, q8_0"},
		&cli.BoolFlag{Name: "no-mmap", Usage: "copy the weights into memory and do not map the file"},

		&cli.StringSliceFlag{Name: "api-key", EnvVars: []string{"INKLING_API_KEY"}, Usage: "answer requests with this `KEY` only; may be repeated"},
		&cli.StringSliceFlag{Name: "allow-origin", Usage: "answer web pages of `ORIGIN`, https://example.org, besides this machine's; * for all; may be repeated"},
		&cli.StringSliceFlag{Name: "allow-media-host", Usage: "fetch media from `HOST`, whatever its address; may be repeated"},
		&cli.StringFlag{Name: "allow-files", Usage: "read media from files below `DIR`"},
		&cli.IntFlag{Name: "max-body", Value: 64, Usage: "refuse requests of more than `MIB`"},
		&cli.DurationFlag{Name: "client-timeout", Value: 30 * time.Second, Usage: "give a client `TIME` to send a piece of its request, or to take one of the answer"},
		&cli.DurationFlag{Name: "drain-timeout", Value: 30 * time.Second, Usage: "at the end let requests at work go on for `TIME`"},
	}...)
}

// serveOptions are the command line of serve.
type serveOptions struct {
	addr   string
	drain  time.Duration
	server server.Options
	log    *slog.Logger
	stderr io.Writer
}

// serveOptionsFrom checks the command line.
func serveOptionsFrom(c *cli.Context) (*serveOptions, error) {
	addr, err := listenAddress(c.String("host"), c.String("port"), cmp.Or(os.Getenv("INKLING_HOST"), os.Getenv("OLLAMA_HOST")))
	if err != nil {
		return nil, &usage.Error{Err: err}
	}
	o := &serveOptions{addr: addr, drain: c.Duration("drain-timeout"), log: slog.Default(), stderr: c.App.ErrWriter}
	if o.server.KeepAlive, err = server.ParseKeepAlive(c.String("keep-alive")); err != nil {
		return nil, usage.Errorf("--keep-alive: %w", err)
	}
	kv, err := engine.ParseKV(c.String("kv"))
	if err != nil {
		return nil, usage.Errorf("--kv: %w", err)
	}
	if err := checkNumbers(c); err != nil {
		return nil, err
	}
	cache := int64(c.Int("cache-ram")) << 20
	if cache <= 0 {
		cache = -1 // none, in the engine's words
	}
	for _, name := range []string{"client-timeout", "drain-timeout"} {
		if c.Duration(name) <= 0 {
			return nil, usage.Errorf("--%s %s: want more than 0", name, c.Duration(name))
		}
	}
	if slices.Contains(c.StringSlice("api-key"), "") {
		return nil, usage.Errorf("--api-key: a key is empty")
	}
	where, err := flags.DevicesFrom(c)
	if err != nil {
		return nil, err
	}
	o.server.Engine = engine.Options{
		Devices:  where,
		Parallel: c.Int("parallel"), Queue: c.Int("queue"), CacheRAM: cache,
		Threads: c.Int("threads"), Context: c.Int("ctx-size"), Batch: c.Int("batch-size"), UBatch: c.Int("ubatch-size"), KV: kv, NoMmap: c.Bool("no-mmap"),
	}
	if err := flags.SetDraft(c, &o.server.Engine); err != nil {
		return nil, err
	}
	o.server.MaxLoaded, o.server.MaxBody, o.server.ClientTimeout = c.Int("max-loaded"), int64(c.Int("max-body"))<<20, c.Duration("client-timeout")
	o.server.APIKeys, o.server.AllowOrigins = c.StringSlice("api-key"), c.StringSlice("allow-origin")
	o.server.Media = server.MediaPolicy{Hosts: c.StringSlice("allow-media-host"), FilesDir: c.String("allow-files")}
	o.server.Version, o.server.Log = buildinfo.Line(), o.log
	return o, o.setModels(c.Args().Slice())
}

// Most of what may be asked for: of sequences that share a step, and of memory in
// MiB, which as bytes has to be a number.
const (
	maxParallel = 1024
	maxMiB      = 1 << 30
)

// checkNumbers checks the options that are numbers, and those that name files.
func checkNumbers(c *cli.Context) error {
	return errors.Join(
		flags.CheckCounts(c, "threads", "ctx-size", "batch-size", "ubatch-size", "parallel", "queue", "max-loaded", "max-body"),
		flags.CheckAtMost(c, "parallel", maxParallel), flags.CheckAtMost(c, "max-body", maxMiB), flags.CheckAtMost(c, "cache-ram", maxMiB),
		flags.CheckValues(c, "mtp", "device", "allow-files"),
	)
}

// setModels finds the files that were named, and the store.
func (o *serveOptions) setModels(args []string) (err error) {
	if o.server.Store, err = store.Open(""); err != nil {
		return err
	}
	for _, path := range args {
		if filepath.Ext(path) != ".gguf" {
			if _, err := o.server.Store.Resolve(path); err == nil {
				continue // it is served by its name, as all models of the store
			} else if dangling := locate.CheckLink(path); dangling != nil {
				return dangling
			} else if _, statErr := os.Stat(path); statErr != nil {
				return err
			}
		}
		m, err := server.FileModel(path)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(o.server.Models, func(other *server.Model) bool { return strings.EqualFold(other.Name, m.Name) }); i >= 0 {
			return fmt.Errorf("%s and %s have the same name", o.server.Models[i].Path, path)
		}
		o.server.Models = append(o.server.Models, m)
	}
	return nil
}
