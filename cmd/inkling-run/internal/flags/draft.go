package flags

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/engine"
)

// Draft are the options for guessing tokens ahead.
func Draft() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "mtp", Usage: "guess tokens ahead by the layers for multi-token prediction in `FILE`, or off; what is generated stays the same", DefaultText: "the model's own, or the file beside it"},
		&cli.StringFlag{Name: "draft", Value: "auto", Usage: "guess `N` tokens ahead, 0 for none, auto for as many as make it faster; with a number and no MTP file, by --ngram"},
		&cli.BoolFlag{Name: "ngram", Usage: "guess that what the text says a second time goes on as the first time, in place of MTP"},
	}
}

// SetDraft reads them.
func SetDraft(c *cli.Context, o *engine.Options) error {
	o.MTP, o.NGram = c.String("mtp"), c.Bool("ngram")
	if o.NGram && o.MTP != "" && o.MTP != "off" {
		return usage.Errorf("--ngram and --mtp do not go together")
	}
	word := c.String("draft")
	if word == "auto" {
		return nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n > engine.MaxDraft {
		return usage.Errorf("--draft %q: want auto or a number from 0 to %d", word, engine.MaxDraft)
	}
	if o.Draft = n; n == 0 {
		o.Draft = engine.NoDraft
	}
	return nil
}
