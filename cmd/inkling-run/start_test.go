package main

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkStart runs the program from exec to the first token of the trained
// checkpoint and its end, and without a model: the best processor and wall time.
func BenchmarkStart(b *testing.B) {
	file := filepath.Join(models, "tiny-F32.gguf")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"version", []string{"version"}},
		{"mapped", []string{"run", file, "Hi", "--temp", "0", "--max-tokens", "1", "-t", "1", "--mtp", "off"}},
		{"copied", []string{"run", file, "Hi", "--temp", "0", "--max-tokens", "1", "-t", "1", "--mtp", "off", "--no-mmap"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			bestCPU, bestWall := time.Hour, time.Hour
			for b.Loop() {
				cmd := command(b, c.args...)
				began := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %v: %s", c.args, err, out)
				}
				bestWall = min(bestWall, time.Since(began))
				bestCPU = min(bestCPU, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
			b.ReportMetric(1e3*bestCPU.Seconds(), "cpu-ms")
			b.ReportMetric(1e3*bestWall.Seconds(), "wall-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
