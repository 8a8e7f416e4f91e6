package measurecmd

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/report"
	"github.com/inkling-go/inkling/internal/doctor"
)

// printDiagnosis writes what doctor found for people.
func printDiagnosis(w io.Writer, d *diagnosis) error {
	p := &report.Printer{W: w}
	p.Table("program", func(row func(...string)) {
		row("version", d.Build.Version+", "+d.Build.Go)
		row("ggml", d.Build.GGML)
		row("SIMD", strings.Join(d.Build.SIMD, " "))
		if d.Warning != "" {
			row("warning", d.Warning)
		}
	})
	p.Table("machine", func(row func(...string)) {
		row("CPU", fmt.Sprintf("%s, %d cores, %d threads", d.CPU, d.Cores, d.Threads))
		row("memory", fmt.Sprintf("%s, %s available", report.BinarySize(d.Memory.Total), report.BinarySize(d.Memory.Available)))
	})
	p.Table("devices", func(row func(...string)) {
		for _, dev := range d.Devices {
			row(dev.Name, dev.Type, report.Printable(dev.Description), report.BinarySize(dev.Total), report.BinarySize(dev.Free)+" free")
		}
	})
	if d.Model != nil {
		printNeeds(p, d.Model)
	}
	return p.Err
}

// printNeeds writes what a model takes.
func printNeeds(p *report.Printer, r *doctor.Report) {
	p.Table("model", func(row func(...string)) {
		row("file", r.Model)
		row("architecture", report.Printable(r.Arch))
		row("parameters", report.Parameters(r.Parameters))
		for _, weights := range r.Weights {
			row("weights", fmt.Sprintf("%s of %s on %s", report.BinarySize(weights.Bytes), filepath.Base(weights.File), weights.Device))
		}
	})
	p.Table(fmt.Sprintf("memory by context, %s keys and values, %d sequences, %d rows at a time", r.KVType, r.Parallel, r.UBatch), func(row func(...string)) {
		row("context", "keys+values", "state", "compute", "with weights", "fits")
		for _, c := range r.Contexts {
			row(strconv.Itoa(c.Context), report.BinarySize(c.KV), report.BinarySize(c.State), report.BinarySize(c.Compute), report.BinarySize(c.Total), string(c.Fits))
		}
	})
	if layout := r.Wanted().Layout; layout != "" {
		p.Table("layout for "+strconv.Itoa(r.Wanted().Context)+" tokens", func(row func(...string)) { row(layout) })
	}
	for _, list := range []struct {
		heading string
		lines   []string
	}{{"without a kernel on the device", r.Fallback}, {"what to change for " + strconv.Itoa(r.Wanted().Context) + " tokens", r.Advice}} {
		if len(list.lines) > 0 {
			p.Table(list.heading, func(row func(...string)) {
				for _, l := range list.lines {
					row(l)
				}
			})
		}
	}
}
