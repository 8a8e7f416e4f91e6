// Package measurecmd has the commands that measure: doctor, bench and eval.
package measurecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/buildinfo"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/describe"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/terminal"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/shapes"
	"github.com/inkling-go/inkling/internal/bench"
	"github.com/inkling-go/inkling/internal/devices"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/machine"
	"github.com/inkling-go/inkling/models"
)

const benchDescription = `Measures how fast models compute: prompts (pp) of -p tokens and answers (tg) of -n
tokens, behind -d tokens that are there already, each -r times. Lists are separated
by commas; all combinations are measured. With -np several sequences work at once,
and the speed is that of all together.

For answers there is besides how many bytes a token reads (the weights that it uses,
keys and values), the bandwidth that its speed comes to, and the share of what this
machine's memory gives, which is measured first with as many threads; on a GPU, of
what copying within its memory moves.

--towers also measures a picture of 100 tiles and 60 s of sound, where the model's
projector takes them, and says what share that is of the time for a prompt of as many tokens.

--synth CONFIG.json makes the weights up in memory: a config of a checkpoint, or one
of the shapes known by name. No model is read, and no file of weights written.

Exit status: 0 done, 1 an error, 2 wrong usage, 130 interrupted.`

// Bench measures speeds.
func Bench() *cli.Command {
	return &cli.Command{
		Name:            "bench",
		Usage:           "measure how fast models compute",
		UsageText:       "inkling-run bench MODEL... [options]\ninkling-run bench --synth CONFIG.json [--type T] [--layers N] [options]",
		Description:     benchDescription,
		HideHelpCommand: true,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "n-prompt", Aliases: []string{"p"}, Value: "512", Usage: "lengths of prompts, a `LIST`; 0 for none"},
			&cli.StringFlag{Name: "n-gen", Aliases: []string{"n"}, Value: "128", Usage: "lengths of answers, a `LIST`; 0 for none"},
			&cli.StringFlag{Name: "n-depth", Aliases: []string{"d"}, Value: "0", Usage: "tokens that are there before, a `LIST`"},
			&cli.StringFlag{Name: "parallel", Aliases: []string{"np"}, Value: "1", Usage: "sequences at once, a `LIST`"},
			&cli.StringFlag{Name: "draft", Value: "0", Usage: "tokens guessed ahead in each step of an answer, a `LIST`"},
			&cli.StringFlag{Name: "accept", Value: "0.85,0.7,0.6", Usage: "`RATES` by which guesses count as right, by how far ahead they are; the last one holds beyond"},
			&cli.StringFlag{Name: "mtp", Usage: "guess by the layers for multi-token prediction in `FILE`, or off for guesses that cost nothing", DefaultText: "the model's own, or the file beside it"},
			&cli.IntFlag{Name: "repetitions", Aliases: []string{"r"}, Value: 5, Usage: "measure each `N` times"},
			&cli.IntFlag{Name: "threads", Aliases: []string{"t"}, Usage: "compute with `N` threads", DefaultText: "one per core"},
			&cli.IntFlag{Name: "ubatch-size", Value: 512, Usage: "compute `N` tokens of a prompt at a time"},
			&cli.StringFlag{Name: "kv", Value: "f16", Usage: "`TYPE` of keys and values in the cache: f32, f16, bf16, q8_0"},
			&cli.BoolFlag{Name: "no-mmap", Usage: "copy the weights into memory and do not map the file"},
			&cli.StringFlag{Name: "read-ahead", Value: "auto", Usage: "read mapped experts from the disk as soon as they are chosen, and count them: on, off, or `auto` for models larger than memory"},
			&cli.BoolFlag{Name: "no-warmup", Usage: "do not compute each once before it is measured"},
			&cli.BoolFlag{Name: "towers", Usage: "also measure pictures of 100 tiles and 60 s of sound"},
			&cli.StringFlag{Name: "mmproj", Usage: "projector `FILE` of --towers", DefaultText: "the one beside the model"},
			&cli.BoolFlag{Name: "floors", Usage: "instead compare a step of each test with its matrix products alone, and list what the rest takes (CPU only)"},
			&cli.BoolFlag{Name: "no-bandwidth", Usage: "do not measure the memory"},
			&cli.StringFlag{Name: "synth", Usage: "make up a model of this shape: `CONFIG` is a config.json or one of " + strings.Join(shapes.Names(), ", ")},
			&cli.StringFlag{Name: "type", Value: "q4_k_m", Usage: "`TYPE` of the made-up weights, as convert-inkling's --outtype"},
			&cli.IntFlag{Name: "layers", Usage: "`N` layers of the made-up model at most", DefaultText: "those of the config"},
			&cli.Uint64Flag{Name: "seed", Usage: "`N` that the weights are drawn from"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "print as `FORMAT` table, md, csv or json"},
			&cli.StringFlag{Name: "plot", Usage: "also draw the speed of answers by sequences at once into `FILE`, an SVG"},
			&cli.BoolFlag{Name: "json", Usage: "the same as -o json: everything, in one object"},
		}, flags.Device()...),
		OnUsageError: usage.OnError,
		Action: func(c *cli.Context) error {
			o, err := benchOptionsFrom(c)
			if err != nil {
				return err
			}
			return interrupt.RunOrLeave(c.Context, o.run)
		},
	}
}

// benchOptions are the command line of bench.
type benchOptions struct {
	c       *cli.Context
	bench   bench.Options
	threads int
	devices devices.Options
	synth   convert.SynthOptions // Config is empty without
	format  string
}

// maxBenchTokens bounds the lengths of a list.
const maxBenchTokens = 1 << 24

func benchOptionsFrom(c *cli.Context) (*benchOptions, error) {
	o := &benchOptions{c: c, threads: c.Int("threads"), format: c.String("output")}
	kv, err := engine.ParseKV(c.String("kv"))
	if err != nil {
		return nil, usage.Errorf("--kv: %w", err)
	}
	if o.devices, err = flags.DevicesFrom(c); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		flag  string
		least int
		to    *[]int
	}{{"n-prompt", 0, &o.bench.Prompt}, {"n-gen", 0, &o.bench.Generate}, {"n-depth", 0, &o.bench.Depth}, {"parallel", 1, &o.bench.Parallel}, {"draft", 0, &o.bench.Draft}} {
		if *list.to, err = numbers(c.String(list.flag), list.least); err != nil {
			return nil, usage.Errorf("--%s: %w", list.flag, err)
		}
	}
	for _, n := range o.bench.Draft {
		if n > engine.MaxDraft {
			return nil, usage.Errorf("--draft %d: want at most %d", n, engine.MaxDraft)
		}
	}
	if o.bench.Accept, err = rates(c.String("accept")); err != nil {
		return nil, usage.Errorf("--accept: %w", err)
	}
	o.bench.Prompt, o.bench.Generate = positive(o.bench.Prompt), positive(o.bench.Generate)
	if err := errors.Join(flags.CheckCounts(c, "threads", "ubatch-size", "repetitions", "layers"), flags.CheckValues(c, "mmproj")); err != nil {
		return nil, err
	}
	if c.Bool("json") {
		o.format = "json"
	}
	synth := c.String("synth")
	switch _, known := benchFormats[o.format]; {
	case !known:
		return nil, usage.Errorf("--output %q: want table, md, csv or json", o.format)
	case c.Bool("towers") && c.Bool("floors"):
		return nil, usage.Errorf("--towers and --floors do not go together")
	case c.IsSet("mmproj") && (!c.Bool("towers") || synth != ""):
		return nil, usage.Errorf("--mmproj is the projector of --towers, which --synth makes up")
	case len(o.bench.Prompt)+len(o.bench.Generate) == 0 && !c.Bool("towers"):
		return nil, usage.Errorf("nothing to measure: -p and -n are both 0")
	case c.NArg() == 0 && synth == "":
		return nil, usage.Errorf("no model; inkling-run bench --help says more")
	case c.NArg() > 0 && synth != "":
		return nil, usage.Errorf("--synth and a model do not go together")
	case synth == "" && (c.IsSet("type") || c.IsSet("layers") || c.IsSet("seed")):
		return nil, usage.Errorf("--type, --layers and --seed are those of --synth")
	}
	if synth != "" {
		o.synth = convert.SynthOptions{Config: synth, Seed: c.Uint64("seed"), Layers: c.Int("layers")}
		if o.synth.OutType, err = convert.ParseOutType(c.String("type")); err != nil {
			return nil, usage.Errorf("--type: %w", err)
		}
	}
	o.bench.KV, o.bench.UBatch, o.bench.Repeat = kv, c.Int("ubatch-size"), c.Int("repetitions")
	o.bench.Warmup = !c.Bool("no-warmup")
	if o.threads == 0 {
		o.threads = machine.Cores()
	}
	return o, nil
}

// positions is what the caches of the largest test hold.
func (o *benchOptions) positions() int {
	most := func(list []int) int { return slices.Max(append([]int{0}, list...)) }
	rows := most(o.bench.Depth) + max(most(o.bench.Prompt), most(o.bench.Generate))
	return rows * most(o.bench.Parallel)
}

// numbers reads a list such as 512,2048.
func numbers(list string, least int) ([]int, error) {
	var out []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < least || n > maxBenchTokens {
			return nil, fmt.Errorf("%q in %q: want numbers from %d to %d", word, list, least, maxBenchTokens)
		}
		out = append(out, n)
	}
	return out, nil
}

// rates reads a list such as 0.85,0.7.
func rates(list string) ([]float64, error) {
	var out []float64
	for word := range strings.SplitSeq(list, ",") {
		r, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || !(r >= 0 && r <= 1) {
			return nil, fmt.Errorf("%q in %q: want numbers from 0 to 1", word, list)
		}
		out = append(out, r)
	}
	return out, nil
}

// positive leaves out zeros, which stand for nothing to measure.
func positive(list []int) []int {
	var out []int
	for _, n := range list {
		if n > 0 {
			out = append(out, n)
		}
	}
	return out
}

// run measures all models and prints them.
func (o *benchOptions) run(ctx context.Context) error {
	report := benchReport{
		Build: buildinfo.Read(), CPU: machine.CPU(), Threads: o.threads,
		KVType: o.bench.KV.String(), UBatch: o.bench.UBatch, Repetitions: o.bench.Repeat, Models: []benchModel{},
	}
	if err := o.checkFiles(ctx); err != nil {
		return err
	}
	if !o.c.Bool("no-bandwidth") {
		var err error
		if report.Bandwidth, err = bench.Bandwidth(ctx, o.threads); err != nil {
			return err
		}
	}
	if w := binding.Warning(); w != "" {
		fmt.Fprintf(o.c.App.ErrWriter, "warning: %s\n", w)
	}
	line := terminal.NewStatusLine(o.c.App.ErrWriter)
	defer line.Clear()
	o.bench.Progress = func(test string, n, of int) { line.Show(fmt.Sprintf("%d of %d: %s", n+1, of, test)) }
	names := o.c.Args().Slice()
	if o.synth.Config != "" {
		names = []string{o.synth.Config}
	}
	for _, name := range names {
		m, err := o.model(ctx, name, report.Bandwidth)
		if err != nil {
			return err
		}
		report.Models = append(report.Models, *m)
	}
	line.Clear()
	if path := o.c.String("plot"); path != "" {
		if err := writeThroughput(path, &report); err != nil {
			return err
		}
	}
	return benchFormats[o.format](o.c.App.Writer, &report)
}

// checkFiles says what is wrong with a file before anything is measured, which
// takes its time.
func (o *benchOptions) checkFiles(ctx context.Context) error {
	for _, name := range o.c.Args().Slice() {
		m, err := locate.LookUp(name)
		if err != nil {
			return err
		}
		if st, err := os.Stat(m.Path); err == nil && st.IsDir() {
			if err := locate.NotCheckpoint(m.Path); err != nil {
				return err
			}
			continue
		}
		f, err := models.OpenFile(m.Path)
		if err != nil {
			return err
		}
		f.Close()
		if _, err := o.find(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// model loads one model, or makes it up, and measures it.
func (o *benchOptions) model(ctx context.Context, name string, bandwidth float64) (_ *benchModel, err error) {
	l := bench.Loading{Threads: o.threads, Devices: o.devices, Context: o.positions(), UBatch: o.bench.UBatch, NoMmap: o.c.Bool("no-mmap"), KV: o.bench.KV}
	path := ""
	if l.Reading, err = models.ParseReadAhead(o.c.String("read-ahead")); err != nil {
		return nil, usage.Errorf("--read-ahead %w", err)
	}
	if o.synth.Config != "" {
		dir, err := os.MkdirTemp("", "inkling-bench-")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.synth.OutDir = dir
		paths, err := convert.SynthHeaders(o.synth)
		if err != nil {
			return nil, err
		}
		path, l.MTP = paths[convert.Text], paths[convert.MTP]
		if o.c.Bool("towers") {
			if l.MMProj = paths[convert.MMProj]; l.MMProj == "" {
				return nil, fmt.Errorf("%s: --towers: the config has no towers", name)
			}
		}
		l.MakeUp, l.Seed = true, o.synth.Seed
	} else {
		files, err := o.find(ctx, name)
		if err != nil {
			return nil, err
		}
		path, l.MTP, l.MMProj = files.Model, files.MTP, files.MMProj
	}
	if err := o.setMTP(&l, path); err != nil {
		return nil, err
	}
	s, err := bench.Open(path, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d, err := describe.File(s.File)
	if err != nil {
		return nil, err
	}
	out := &benchModel{
		Name: strings.TrimSuffix(filepath.Base(name), ".gguf"), Arch: d.Architecture, Type: d.Quantisation, Bytes: s.WeightBytes(), Active: s.Costs.Active(),
		Parameters: d.Parameters, Device: s.Device(), Synth: l.MakeUp, Streaming: s.Streaming(),
	}
	if l.MakeUp {
		out.Name = strings.TrimSuffix(filepath.Base(path), ".gguf")
		out.Type = string(o.synth.OutType)
	}
	if !o.c.Bool("no-bandwidth") {
		if out.Bandwidth, err = s.DeviceBandwidth(ctx); err != nil {
			return nil, err
		}
		bandwidth = cmp.Or(out.Bandwidth, bandwidth)
	}
	if o.c.Bool("floors") {
		out.Floors, err = o.floors(ctx, s)
	} else {
		out.Results, err = s.Run(ctx, o.bench, bandwidth)
	}
	return out, err
}

// setMTP chooses what guesses are made by, if any are.
func (o *benchOptions) setMTP(l *bench.Loading, model string) (err error) {
	file := o.c.String("mtp")
	if l.Depths = slices.Max(o.bench.Draft); l.Depths == 0 || file == "off" {
		l.MTP, l.Depths = "", 0
		return nil
	}
	if l.MTP = cmp.Or(file, l.MTP); l.MTP == "" {
		l.MTP, err = engine.FindMTP(model)
	}
	return err
}
