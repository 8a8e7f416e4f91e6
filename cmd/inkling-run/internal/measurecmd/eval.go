package measurecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/files"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/eval"
	"github.com/inkling-go/inkling/internal/machine"
)

const evalDescription = `Measures how good a model is, in one or more ways at once:

  --set FILE.jsonl    asks the questions of a set, one JSON object a line, and counts
                      the answers that are as expected. docs/eval.md has the format.
  --perplexity FILE   how well the model predicts a text
  --against MODEL2    how far its predictions are from those of another model, as the
                      same one in more bits: over the text, or without one over the
                      answers of the set

Texts are cut into windows of --ctx-size tokens, of each of which the second half is
scored, as by llama.cpp; --stride N begins one every N tokens and scores the last N.

Exit status: 0 done, 1 an error, 2 wrong usage, 130 interrupted.`

// Eval measures how good models are.
func Eval() *cli.Command {
	return &cli.Command{
		Name:            "eval",
		Usage:           "measure how good a model is: accuracy, perplexity, distance to another model",
		UsageText:       "inkling-run eval MODEL [--set FILE.jsonl] [--perplexity FILE] [--against MODEL2] [options]",
		Description:     evalDescription,
		HideHelpCommand: true,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "set", Usage: "questions, a JSONL `FILE`; paths of media in it count from its folder"},
			&cli.StringFlag{Name: "perplexity", Usage: "text `FILE` to predict"},
			&cli.StringFlag{Name: "against", Usage: "the model to compare with, a `MODEL` of the same vocabulary"},
			&cli.IntFlag{Name: "limit", Usage: "take the first `N` questions or windows", DefaultText: "all"},
			&cli.IntFlag{Name: "ctx-size", Aliases: []string{"c"}, Value: 512, Usage: "windows of `N` tokens"},
			&cli.IntFlag{Name: "stride", Usage: "begin a window every `N` tokens", DefaultText: "one after another"},
			&cli.IntFlag{Name: "threads", Aliases: []string{"t"}, Usage: "compute with `N` threads", DefaultText: "one per core"},
			&cli.StringFlag{Name: "kv", Value: "f16", Usage: "`TYPE` of keys and values in the cache: f32, f16, bf16, q8_0"},
			&cli.StringFlag{Name: "mmproj", Usage: "projector `FILE` for media, or off", DefaultText: "the one beside the model"},
			&cli.BoolFlag{Name: "no-mmap", Usage: "copy the weights into memory and do not map the file"},
			&cli.StringFlag{Name: "plot", Usage: "draw the comparison of --against to `OUT`.svg or OUT.png"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object, wrong answers included"},
		}, flags.Device()...),
		OnUsageError: usage.OnError,
		Action: func(c *cli.Context) error {
			o, err := evalOptionsFrom(c)
			if err != nil {
				return err
			}
			return interrupt.RunOrLeave(c.Context, o.run)
		},
	}
}

// evalOptions are the command line of eval.
type evalOptions struct {
	c                   *cli.Context
	set, text           string
	against, plot       string
	limit, size, stride int
	loading             eval.Loading
}

// evalResult is what eval prints, in the form of --json.
type evalResult struct {
	Model      string           `json:"model"`
	Against    string           `json:"against,omitempty"`
	Accuracy   *eval.Accuracy   `json:"accuracy,omitempty"`
	Perplexity *eval.Perplexity `json:"perplexity,omitempty"`
	Distance   *eval.Distance   `json:"distance,omitempty"`
}

func evalOptionsFrom(c *cli.Context) (*evalOptions, error) {
	o := &evalOptions{
		c: c, set: c.String("set"), text: c.String("perplexity"), against: c.String("against"), plot: c.String("plot"),
		limit: c.Int("limit"), size: c.Int("ctx-size"), stride: c.Int("stride"),
	}
	kv, err := engine.ParseKV(c.String("kv"))
	if err != nil {
		return nil, usage.Errorf("--kv: %w", err)
	}
	dev, err := flags.DevicesFrom(c)
	if err != nil {
		return nil, err
	}
	if err := flags.CheckCounts(c, "limit", "ctx-size", "stride", "threads"); err != nil {
		return nil, err
	}
	ext := strings.ToLower(filepath.Ext(o.plot))
	switch {
	case c.NArg() != 1:
		return nil, usage.Errorf("%d models, want one", c.NArg())
	case o.set == "" && o.text == "":
		return nil, usage.Errorf("nothing to measure with: --set names questions, --perplexity a text")
	case o.stride >= o.size || o.size < 2:
		return nil, usage.Errorf("--stride %d: want less than the windows of --ctx-size %d", o.stride, o.size)
	case o.plot != "" && o.against == "":
		return nil, usage.Errorf("--plot draws what --against compares")
	case o.plot != "" && ext != ".svg" && ext != ".png":
		return nil, usage.Errorf("--plot %s: want a name that ends in .svg or .png", o.plot)
	}
	threads := c.Int("threads")
	if threads == 0 {
		threads = machine.Cores()
	}
	o.loading = eval.Loading{Threads: threads, Devices: dev, NoMmap: c.Bool("no-mmap"), KV: kv, Window: o.size}
	return o, nil
}

// run measures all that was asked for and prints it.
func (o *evalOptions) run(ctx context.Context) error {
	var items []eval.Item
	var err error
	if o.set != "" {
		if items, err = eval.ReadSet(o.set); err != nil {
			return err
		}
		if o.limit > 0 {
			items = items[:min(o.limit, len(items))]
		}
	}
	files, err := locate.Find(ctx, o.c.Args().First(), o.c.String("mmproj"), o.c.App.ErrWriter)
	if err != nil {
		return err
	}
	r := evalResult{Model: files.Model}
	if items != nil && (o.against == "" || o.text != "") {
		if r.Accuracy, err = o.accuracy(ctx, files, items); err != nil {
			return err
		}
	}
	if o.text != "" || o.against != "" {
		if err := o.score(ctx, files.Model, items, &r); err != nil {
			return err
		}
	}
	if o.c.Bool("json") {
		return report.JSON(o.c.App.Writer, r)
	}
	return printEval(o.c.App.Writer, &r)
}

// accuracy asks the questions.
func (o *evalOptions) accuracy(ctx context.Context, files locate.Files, items []eval.Item) (*eval.Accuracy, error) {
	mmproj := files.MMProj
	if mmproj == "" {
		mmproj = "off"
	}
	e, err := engine.Open(ctx, engine.Options{
		Model: files.Model, MMProj: mmproj, Threads: o.loading.Threads, KV: o.loading.KV, NoMmap: o.loading.NoMmap, Devices: o.loading.Devices,
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	line := terminal.NewStatusLine(o.c.App.ErrWriter)
	defer line.Clear()
	return eval.Answer(ctx, e, items, eval.Dir(o.set), func(done, right int) {
		line.Show(fmt.Sprintf("%d of %d questions, %d right", done, len(items), right))
	})
}

// score predicts the text, or the answers of the set.
func (o *evalOptions) score(ctx context.Context, model string, items []eval.Item, r *evalResult) (err error) {
	s, err := eval.OpenScorer(model, o.loading)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	windows, err := o.windows(s, items)
	if err != nil {
		return err
	}
	line := terminal.NewStatusLine(o.c.App.ErrWriter)
	defer line.Clear()
	if o.against == "" {
		p, err := s.Perplexity(ctx, windows, func(done int, so eval.Perplexity) {
			line.Show(fmt.Sprintf("%d of %d windows, perplexity %.4f", done, len(windows), so.Value))
		})
		r.Perplexity = &p
		return err
	}
	other, err := locate.Find(ctx, o.against, "off", o.c.App.ErrWriter)
	if err != nil {
		return err
	}
	r.Against = other.Model
	ref, err := eval.OpenScorer(other.Model, o.loading)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ref.Close()) }()
	r.Distance, err = s.Against(ctx, ref, windows, func(done int, mean float64) {
		line.Show(fmt.Sprintf("%d of %d windows, KL %.6f", done, len(windows), mean))
	})
	if err != nil || o.plot == "" {
		return err
	}
	return files.Write(o.plot, func(w io.Writer) error {
		title := filepath.Base(r.Model) + " against " + filepath.Base(r.Against)
		if strings.ToLower(filepath.Ext(o.plot)) == ".png" {
			return r.Distance.WritePNG(w, title)
		}
		return r.Distance.WriteSVG(w, title)
	})
}

// windows cuts what is scored.
func (o *evalOptions) windows(s *eval.Scorer, items []eval.Item) (list []eval.Window, err error) {
	if o.text == "" {
		skipped := 0
		if list, skipped, err = s.SetWindows(items, o.size); err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s: no question without media, with an expected text, of at most %d tokens (--ctx-size)", o.set, o.size)
		}
		if skipped > 0 {
			fmt.Fprintf(o.c.App.ErrWriter, "note: %d questions with media, without an expected text or of more than %d tokens (--ctx-size) are left out\n", skipped, o.size)
		}
		return list, nil
	}
	f, err := os.Open(o.text)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := files.ReadBounded(o.text, f)
	if err != nil {
		return nil, err
	}
	if list, err = eval.Windows(s.Vocab.Encode(string(data)), o.size, o.stride); err != nil {
		return nil, fmt.Errorf("%s: %w (--ctx-size)", o.text, err)
	}
	if o.limit > 0 {
		list = list[:min(o.limit, len(list))]
	}
	return list, nil
}
