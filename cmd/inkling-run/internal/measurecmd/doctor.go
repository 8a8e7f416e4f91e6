package measurecmd

import (
	"context"
	"errors"
	"runtime"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/buildinfo"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/flags"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/interrupt"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/locate"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/doctor"
	"github.com/inkling-go/inkling/internal/engine"
	"github.com/inkling-go/inkling/internal/machine"
)

const doctorDescription = `Without MODEL, prints what the program was built with and what the machine offers:
devices, memory, SIMD. With MODEL, a GGUF file, a checkpoint's folder or a name of
the store, prints besides what the model takes before anything of it is loaded:
weights on each device, and for several context lengths keys and values, other
state and intermediate results, whether it fits, and what to change if it does not.

A context "fits" with "yes" if all of it has room, with "slow" if the weights have
not: they are mapped, and parts of them are read from the disk again and again.

Exit status: 0 it fits or there is no model, 1 an error or it does not fit, 2 wrong
usage.`

// Doctor says what the machine has and what a model needs.
func Doctor() *cli.Command {
	return &cli.Command{
		Name:            "doctor",
		Usage:           "print what the machine offers, and what a model takes before it is loaded",
		UsageText:       "inkling-run doctor [MODEL] [options]",
		Description:     doctorDescription,
		HideHelpCommand: true,
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "ctx-size", Aliases: []string{"c"}, Usage: "the context that is wanted, `N` tokens", DefaultText: "the model's, at most " + strconv.Itoa(engine.DefaultContext)},
			&cli.StringFlag{Name: "kv", Value: "f16", Usage: "`TYPE` of keys and values in the cache: f32, f16, bf16, q8_0"},
			&cli.IntFlag{Name: "ubatch-size", Value: 512, Usage: "`N` tokens of the prompt at a time"},
			&cli.IntFlag{Name: "parallel", Value: 1, Usage: "`N` sequences at once"},
			&cli.StringFlag{Name: "mmproj", Usage: "projector `FILE` for media, or off", DefaultText: "the one beside the model"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		}, flags.Device()...),
		OnUsageError: usage.OnError,
		Action: func(c *cli.Context) error {
			return interrupt.RunOrLeave(c.Context, func(ctx context.Context) error { return runDoctor(ctx, c) })
		},
	}
}

// diagnosis is what doctor prints, in the form of --json.
type diagnosis struct {
	Build   buildinfo.Info `json:"build"`
	Warning string         `json:"warning,omitempty"`
	CPU     string         `json:"cpu"`
	Cores   int            `json:"cores"`   // physical ones
	Threads int            `json:"threads"` // of the hardware
	Memory  machine.Memory `json:"memory"`
	Devices []deviceInfo   `json:"devices"`
	Model   *doctor.Report `json:"model,omitempty"`
}

// deviceInfo is a device that models can be computed on. Memory is in bytes.
type deviceInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"`
	Total       int64  `json:"total"`
	Free        int64  `json:"free"`
}

// errNotFit is the end of doctor for a model that does not fit; what is missing
// has been printed.
var errNotFit = errors.New("the model does not fit with these settings; the advice says what to change")

func runDoctor(ctx context.Context, c *cli.Context) error {
	o, err := doctorOptions(c)
	if err != nil {
		return err
	}
	binding.LoadModules() // what is missing is no device
	d := diagnose()
	if c.NArg() == 1 {
		files, err := locate.Find(ctx, c.Args().First(), c.String("mmproj"), c.App.ErrWriter)
		if err != nil {
			return err
		}
		o.Model, o.MMProj, o.MTP, o.Memory = files.Model, files.MMProj, files.MTP, d.Memory
		if d.Model, err = doctor.Check(o); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		err = report.JSON(c.App.Writer, d)
	} else {
		err = printDiagnosis(c.App.Writer, d)
	}
	if err == nil && d.Model != nil && d.Model.Wanted().Fits == doctor.Lacks {
		return errNotFit
	}
	return err
}

// doctorOptions checks the command line.
func doctorOptions(c *cli.Context) (o doctor.Options, err error) {
	kv, err := engine.ParseKV(c.String("kv"))
	if err != nil {
		return o, usage.Errorf("--kv: %w", err)
	}
	if c.NArg() > 1 {
		return o, usage.Errorf("%d models, want one at most", c.NArg())
	}
	for _, name := range []string{"ctx-size", "ubatch-size", "parallel"} {
		if n := c.Int(name); c.IsSet(name) && n < 1 {
			return o, usage.Errorf("--%s %d: want at least 1", name, n)
		}
	}
	dev, err := flags.DevicesFrom(c)
	if err != nil {
		return o, err
	}
	return doctor.Options{
		Devices: dev, Context: c.Int("ctx-size"), KV: kv, Parallel: c.Int("parallel"), UBatch: c.Int("ubatch-size"),
	}, nil
}

// diagnose looks at the program and the machine.
func diagnose() *diagnosis {
	d := &diagnosis{
		Build: buildinfo.Read(), Warning: binding.Warning(), CPU: machine.CPU(),
		Cores: machine.Cores(), Threads: runtime.NumCPU(), Devices: []deviceInfo{},
	}
	d.Memory, _ = machine.ReadMemory()
	for _, dev := range binding.Devices() {
		free, total := dev.Memory()
		if dev.IsCPU() { // ggml counts neither what can be dropped nor a container's limit
			free, total = d.Memory.Available, d.Memory.Total
		}
		d.Devices = append(d.Devices, deviceInfo{dev.Name(), dev.Description(), dev.Type(), total, free})
	}
	return d
}
