package servecmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/store"
)

// Stop makes a server give up a model.
func Stop() *cli.Command {
	return &cli.Command{
		Name:      "stop",
		Usage:     "make a running server take a model out of memory",
		UsageText: "inkling-run stop NAME",
		Description: "Makes the server at INKLING_HOST, or else OLLAMA_HOST, or 127.0.0.1:11434, take a model\nout of memory once its requests are done. INKLING_API_KEY is the key for it.\n\n" +
			"Exit status: 0 done, 1 an error, as a model that is not loaded, 2 wrong usage.",
		HideHelpCommand: true,
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usage.Errorf("%d models, want one; inkling-run ps lists them", c.NArg())
			}
			s, err := newServerClient()
			if err != nil {
				return err
			}
			return interrupt.Run(c.Context, func(ctx context.Context) error {
				name, err := s.find(ctx, c.Args().First())
				if err != nil {
					return err
				}
				if err := s.unload(ctx, name); err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.App.Writer, "stopped %s\n", name)
				return err
			})
		},
	}
}

// find returns the name of a model in memory as the server has it. To ask for
// another one would load it.
func (s *serverClient) find(ctx context.Context, name string) (string, error) {
	models, err := s.loaded(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, m := range models {
		if sameModel(m.Name, name) {
			return m.Name, nil
		}
		names = append(names, m.Name)
	}
	if names == nil {
		return "", fmt.Errorf("%s: the server at %s has no model in memory", name, s.base)
	}
	return "", fmt.Errorf("%s: not in the memory of the server at %s, which has %s", name, s.base, strings.Join(names, ", "))
}

// sameModel reports whether two names are of one model: latest may be left out,
// and capitals do not matter. A server has models that are files as well.
func sameModel(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	x, badX := store.ParseName(a)
	y, badY := store.ParseName(b)
	return badX == nil && badY == nil && strings.EqualFold(x.String(), y.String())
}
