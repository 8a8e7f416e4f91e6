// Package flags has the options that several commands share, and what reads and checks
// their values.
package flags

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
	"github.com/inkling-go/inkling/internal/devices"
)

// Device are the options that say where to compute. Their names are those of
// llama.cpp.
func Device() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "device", Value: "auto", Usage: "compute on `DEVICES`: auto, cpu, or GPUs such as cuda, cuda:0 or cuda:0,1"},
		&cli.StringFlag{Name: "gpu-layers", Aliases: []string{"ngl"}, Value: "auto", Usage: "put the last `N` layers on the GPU, or all; auto takes what fits"},
		&cli.IntFlag{Name: "main-gpu", Usage: "number `N`, in the order of --device, of the GPU that has what is in no layer"},
		&cli.StringFlag{Name: "tensor-split", Usage: "`SHARES` of the layers for each GPU, such as 3,1", DefaultText: "by free memory"},
		&cli.BoolFlag{Name: "cpu-moe", Usage: "leave all routed experts in host memory"},
		&cli.IntFlag{Name: "n-cpu-moe", Usage: "leave the routed experts of the first `N` layers in host memory", DefaultText: "as few as fit"},
		&cli.StringSliceFlag{Name: "override-tensor", Aliases: []string{"ot"}, Usage: "`PATTERN=DEVICE`: put tensors whose name matches the regular expression on cpu, cuda:0 and so on; may be given again"},
		&cli.StringFlag{Name: "rpc", Hidden: true},
	}
}

// DevicesFrom checks them.
func DevicesFrom(c *cli.Context) (devices.Options, error) {
	o := devices.Options{Device: c.String("device"), GPULayers: c.String("gpu-layers"), MainGPU: c.Int("main-gpu"), HostExperts: c.Int("n-cpu-moe")}
	switch {
	case c.IsSet("rpc"):
		return o, usage.Errorf("--rpc %s: computing on other machines needs ggml's RPC backend, which this program does not have", c.String("rpc"))
	case o.HostExperts < 0:
		return o, usage.Errorf("--n-cpu-moe %d: want at least 0", o.HostExperts)
	case c.Bool("cpu-moe") && c.IsSet("n-cpu-moe"):
		return o, usage.Errorf("--cpu-moe and --n-cpu-moe do not go together")
	case c.Bool("cpu-moe"):
		o.HostExperts = devices.AllLayers
	}
	if s := c.String("tensor-split"); s != "" {
		for part := range strings.SplitSeq(s, ",") {
			share, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
			if err != nil || !(share >= 0) {
				return o, usage.Errorf("--tensor-split %s: want numbers such as 3,1", s)
			}
			o.TensorSplit = append(o.TensorSplit, share)
		}
	}
	for _, s := range c.StringSlice("override-tensor") {
		i := strings.LastIndexByte(s, '=') // a pattern may hold one
		if i <= 0 || i == len(s)-1 {
			return o, usage.Errorf("--override-tensor %s: want PATTERN=DEVICE", s)
		}
		o.Overrides = append(o.Overrides, devices.Override{Pattern: s[:i], Device: s[i+1:]})
	}
	return o, nil
}
