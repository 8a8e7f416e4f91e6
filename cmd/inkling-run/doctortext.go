package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/internal/doctor"
)

// printDiagnosis writes what doctor found for people.
func printDiagnosis(w io.Writer, d *diagnosis) error {
	p := &filePrinter{w: w}
	p.table("program", func(row func(...string)) {
		row("version", d.Build.Version+", "+d.Build.Go)
		row("ggml", d.Build.GGML)
		row("SIMD", strings.Join(d.Build.SIMD, " "))
		if d.Warning != "" {
			row("warning", d.Warning)
		}
	})
	p.table("machine", func(row func(...string)) {
		row("CPU", fmt.Sprintf("%s, %d cores, %d threads", d.CPU, d.Cores, d.Threads))
		row("memory", fmt.Sprintf("%s, %s available", binarySize(d.Memory.Total), binarySize(d.Memory.Available)))
	})
	p.table("devices", func(row func(...string)) {
		for _, dev := range d.Devices {
			row(dev.Name, dev.Type, printable(dev.Description), binarySize(dev.Total), binarySize(dev.Free)+" free")
		}
	})
	if d.Model != nil {
		printNeeds(p, d.Model)
	}
	return p.err
}

// printNeeds writes what a model takes.
func printNeeds(p *filePrinter, r *doctor.Report) {
	p.table("model", func(row func(...string)) {
		row("file", r.Model)
		row("architecture", printable(r.Arch))
		row("parameters", parameters(r.Parameters))
		for _, weights := range r.Weights {
			row("weights", fmt.Sprintf("%s of %s on %s", binarySize(weights.Bytes), filepath.Base(weights.File), weights.Device))
		}
	})
	p.table(fmt.Sprintf("memory by context, %s keys and values, %d sequences, %d rows at a time", r.KVType, r.Parallel, r.UBatch), func(row func(...string)) {
		row("context", "keys+values", "state", "compute", "with weights", "fits")
		for _, c := range r.Contexts {
			row(strconv.Itoa(c.Context), binarySize(c.KV), binarySize(c.State), binarySize(c.Compute), binarySize(c.Total), string(c.Fits))
		}
	})
	if layout := r.Wanted().Layout; layout != "" {
		p.table("layout for "+strconv.Itoa(r.Wanted().Context)+" tokens", func(row func(...string)) { row(layout) })
	}
	for _, list := range []struct {
		heading string
		lines   []string
	}{{"without a kernel on the device", r.Fallback}, {"what to change for " + strconv.Itoa(r.Wanted().Context) + " tokens", r.Advice}} {
		if len(list.lines) > 0 {
			p.table(list.heading, func(row func(...string)) {
				for _, l := range list.lines {
					row(l)
				}
			})
		}
	}
}
