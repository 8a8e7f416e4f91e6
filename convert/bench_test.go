//go:build unix

package convert

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/quantin"
	"github.com/inkling-go/inkling/internal/gguf"
)

// benchmarked is a checkpoint of four matrices in BF16, 128 MiB in all, whose pages
// are in memory.
func benchmarked(b *testing.B) (dir string, bytes int64) {
	b.Helper()
	const rows, cols = 4096, 4096
	c := &checkpointtest.Checkpoint{Config: map[string]any{"model_type": "copies"}}
	row := make([]float32, cols)
	for i := range 4 {
		x := c.Add(fmt.Sprintf("t%d.weight", i), rows, cols)
		quantin.Draw(x.Name, x.Shape, 1, 0.02, 0).Decode(row, 0)
		for r := range rows {
			if err := gguf.EncodeRows(gguf.BF16, x.Data[2*r*cols:][:2*cols], row); err != nil {
				b.Fatal(err)
			}
		}
	}
	return c.Write(b), 4 * 2 * rows * cols
}

// best returns the shortest of some runs.
func best(b *testing.B, n int, do func()) time.Duration {
	b.Helper()
	least := time.Duration(0)
	for i := range n {
		start := time.Now()
		do()
		if took := time.Since(start); i == 0 || took < least {
			least = took
		}
	}
	return least
}

// BenchmarkCopy compares a conversion that keeps the type with cp of the same bytes:
// the metric is the ratio of their speeds. The goal is 0.8 or more.
func BenchmarkCopy(b *testing.B) {
	dir, bytes := benchmarked(b)
	out := b.TempDir()
	cp := best(b, 3, func() {
		to := filepath.Join(out, "cp")
		if err := exec.Command("cp", filepath.Join(dir, "model.safetensors"), to).Run(); err != nil {
			b.Skip("no cp: ", err)
		}
		flush(b, to)
	})
	ours := converted(b, Options{Dir: dir, OutDir: out, OutType: OutBF16})
	b.ReportMetric(float64(bytes)/ours.Seconds()/1e6, "MB/s")
	b.ReportMetric(cp.Seconds()/ours.Seconds(), "of-cp")
}

// BenchmarkQuantise compares a conversion, reading and writing included, with a bare
// loop of ggml's quantiser in one thread, times the cores. The goal is 0.85 or more.
func BenchmarkQuantise(b *testing.B) {
	dir, _ := benchmarked(b)
	for _, t := range []struct {
		out OutType
		to  gguf.Type
	}{{OutQ8_0, gguf.Q8_0}, {OutQ4_K_M, gguf.Q4_K}} {
		b.Run(string(t.out), func(b *testing.B) {
			const n, cols = 1 << 20, 4096
			src := make([]float32, n)
			quantin.Draw("x", []int64{n / cols, cols}, 1, 0.02, 0).Decode(src, 0)
			row, err := t.to.RowBytes(cols)
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]byte, row*n/cols)
			bare := best(b, 5, func() {
				if err := binding.Quantise(binding.DType(t.to), dst, src, cols, nil); err != nil {
					b.Fatal(err)
				}
			})
			const weights = 4 * 4096 * 4096
			start := cpuTime(b)
			if err := binding.Quantise(binding.DType(t.to), dst, src, cols, nil); err != nil {
				b.Fatal(err)
			}
			bareCPU := cpuTime(b) - start
			start, runs := cpuTime(b), max(3, b.N)
			ours := converted(b, Options{Dir: dir, OutDir: b.TempDir(), OutType: t.out})
			b.ReportMetric(float64(runs)*weights/n*bareCPU.Seconds()/(cpuTime(b)-start).Seconds(), "of-cpu")
			b.ReportMetric(weights/ours.Seconds()/1e6, "Mweights/s")
			one := n / bare.Seconds()
			b.ReportMetric(weights/ours.Seconds()/one/float64(runtime.GOMAXPROCS(0)), "of-cores")
		})
	}
}

// converted returns the time of the fastest of b.N conversions, at least three.
func converted(b *testing.B, o Options) time.Duration {
	b.Helper()
	o.Name, o.Force, o.Only = "m", true, []Kind{Text}
	return best(b, max(3, b.N), func() {
		if _, err := Run(context.Background(), o); err != nil {
			b.Fatal(err)
		}
	})
}

// flush forces a file to the disk, as a conversion does.
func flush(b *testing.B, path string) {
	b.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
}

// cpuTime returns the processor time that this process has had.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
