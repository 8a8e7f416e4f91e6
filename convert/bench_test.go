//go:build unix

package convert

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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

// rounds are how often a benchmark compares a conversion with what it is measured by.
// Both are timed by turns, so that what else the machine does meets both.
func rounds(b *testing.B) int { return max(5, b.N) }

// took returns how long do takes.
func took(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// ratios collects what comes of the rounds.
type ratios []float64

// report reports the best round, which the machine disturbed least, and the middle one.
func (r ratios) report(b *testing.B, unit string) {
	b.Helper()
	slices.Sort(r)
	b.ReportMetric(r[len(r)-1], unit)
	b.ReportMetric(r[len(r)/2], unit+"-median")
}

// BenchmarkCopy compares a conversion that keeps the type with cp of the same bytes:
// the metrics are ratios of their speeds. A conversion ends with the bytes on the disk.
// of-cp is the ratio to cp and a sync, of-bare-cp to cp alone, whose bytes are in
// memory only. The goal is 0.8 or more.
func BenchmarkCopy(b *testing.B) {
	dir, bytes := benchmarked(b)
	out := b.TempDir()
	from, to := filepath.Join(dir, "model.safetensors"), filepath.Join(out, "cp")
	var synced, bare ratios
	fastest := time.Duration(math.MaxInt64)
	for range rounds(b) {
		cp := took(func() {
			if err := exec.CommandContext(b.Context(), "cp", from, to).Run(); err != nil {
				b.Skip("no cp: ", err)
			}
		})
		sync := took(func() { flush(b, to) })
		ours := converted(b, Options{Dir: dir, OutDir: out, OutType: OutBF16})
		fastest = min(fastest, ours)
		synced = append(synced, (cp+sync).Seconds()/ours.Seconds())
		bare = append(bare, cp.Seconds()/ours.Seconds())
	}
	b.ReportMetric(float64(bytes)/fastest.Seconds()/1e6, "MB/s")
	synced.report(b, "of-cp")
	bare.report(b, "of-bare-cp")
}

// BenchmarkQuantise compares a conversion, reading and writing included, with a bare
// loop of ggml's quantiser over as many of the same weights in one thread. of-cores is
// the ratio of speeds by the number of cores, of-cpu that of processor time, which
// stays the same on a machine with other work. The goal is 0.85 or more.
func BenchmarkQuantise(b *testing.B) {
	dir, bytes := benchmarked(b)
	weights := bytes / 2
	for _, t := range []struct {
		out OutType
		to  gguf.Type
	}{{OutQ8_0, gguf.Q8_0}, {OutQ4_K_M, gguf.Q4_K}} {
		b.Run(string(t.out), func(b *testing.B) {
			const n, cols = 1 << 22, 4096
			src := make([]float32, n)
			quantin.Draw("x", []int64{n / cols, cols}, 1, 0.02, 0).Decode(src, 0)
			row, err := t.to.RowBytes(cols)
			if err != nil {
				b.Fatal(err)
			}
			dst, out := make([]byte, row*n/cols), b.TempDir()
			var cores, cpu ratios
			fastest := time.Duration(math.MaxInt64)
			for range rounds(b) {
				before := cpuTime(b)
				bare := took(func() {
					if err := binding.Quantise(binding.DType(t.to), dst, src, cols, nil); err != nil {
						b.Fatal(err)
					}
				}).Seconds() * float64(weights) / n
				bareCPU := (cpuTime(b) - before).Seconds() * float64(weights) / n
				before = cpuTime(b)
				ours := converted(b, Options{Dir: dir, OutDir: out, OutType: t.out})
				fastest = min(fastest, ours)
				cpu = append(cpu, bareCPU/(cpuTime(b)-before).Seconds())
				cores = append(cores, bare/ours.Seconds()/float64(runtime.GOMAXPROCS(0)))
			}
			b.ReportMetric(float64(weights)/fastest.Seconds()/1e6, "Mweights/s")
			cores.report(b, "of-cores")
			cpu.report(b, "of-cpu")
		})
	}
}

// converted returns the time of a conversion.
func converted(b *testing.B, o Options) time.Duration {
	b.Helper()
	o.Name, o.Force, o.Only = "m", true, []Kind{Text}
	return took(func() {
		if _, err := Run(b.Context(), o); err != nil {
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
