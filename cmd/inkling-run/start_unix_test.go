//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkStart runs the program from exec to the first token of the trained
// checkpoint and its end: best processor and wall time, and how much of the file's
// size it held in memory beyond what it holds to print its version.
func BenchmarkStart(b *testing.B) {
	file := filepath.Join(models, "tiny-F32.gguf")
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	run := func(args ...string) (cpu, wall time.Duration, rss int64) {
		cmd := command(b, args...)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v: %s", args, err, out)
		}
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(began), usage.Maxrss << 10
	}
	_, _, program := run("version")
	bestCPU, bestWall, held := time.Hour, time.Hour, int64(1)<<62
	for b.Loop() {
		cpu, wall, rss := run("run", file, "Hi", "--temp", "0", "--max-tokens", "1", "-t", "1", "--mtp", "off")
		bestCPU, bestWall, held = min(bestCPU, cpu), min(bestWall, wall), min(held, rss)
	}
	b.ReportMetric(bestCPU.Seconds()*1e3, "cpu-ms")
	b.ReportMetric(bestWall.Seconds()*1e3, "wall-ms")
	b.ReportMetric(float64(held-program)/float64(info.Size()), "memory/file")
	b.ReportMetric(0, "ns/op")
}
