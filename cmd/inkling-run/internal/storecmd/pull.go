// Package storecmd has the commands of the model store: pull, create, import, list, cp, rm
// and gc.
package storecmd

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/store"
)

const pullDescription = `Fetches a GGUF model from the Hugging Face Hub into the store: the text model, its
projector and its layers for multi-token prediction. NAME is hf.co/ORG/REPO, or the
address of the repository's page; :QUANT behind it names the type of quantisation
or a file, else Q4_K_M or a similar one is taken. The model's name in the store is
the same.

A pull that was interrupted goes on where it stopped. Gated repositories want the
token of an account that has accepted their terms, in HF_TOKEN or stored by hf auth
login. HF_ENDPOINT names a mirror. INKLING_HOME is the folder of the store, ~/.inkling
unless set.

Exit status: 0 done, 1 an error, 2 wrong usage, 130 interrupted.`

// Pull fetches a model into the store.
func Pull() *cli.Command {
	return &cli.Command{
		Name:            "pull",
		Usage:           "fetch a model from the Hugging Face Hub into the store",
		UsageText:       "inkling-run pull hf.co/ORG/REPO[:QUANT]",
		Description:     pullDescription,
		HideHelpCommand: true,
		OnUsageError:    usage.OnError,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usage.Errorf("%d models, want one: hf.co/ORG/REPO[:QUANT]", c.NArg())
			}
			if err := checkNames(c.Args().First()); err != nil {
				return err
			}
			return interrupt.RunOrLeave(c.Context, func(ctx context.Context) error {
				m, err := locate.Pull(ctx, c.Args().First(), c.App.ErrWriter)
				if err != nil {
					return err
				}
				return reportStored(c, "pulled", m)
			})
		},
	}
}

// reportStored says that a model is in the store.
func reportStored(c *cli.Context, did string, m *store.Model) error {
	_, err := fmt.Fprintf(c.App.Writer, "%s %s: %s, %s\n", did, m.Name, m.ID(), report.ByteSize(m.Size))
	return err
}
