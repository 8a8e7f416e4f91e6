package convert

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMemory converts a tensor of 512 MiB and samples the process's anonymous
// memory. What is in use is the pipe's buffers, whatever the size of the tensor.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a gigabyte")
	}
	dir := sparse(t, 128, 1024, 2048)
	for _, tc := range []struct {
		out     OutType
		workers int
		limit   int64 // bytes above the start
	}{
		{OutBF16, 2, 96 << 20},
		{OutQ8_0, 2, 96 << 20},
		{OutQ8_0, 64, maxPipeBytes + 64<<20},
	} {
		t.Run(fmt.Sprintf("%s/%d workers", tc.out, tc.workers), func(t *testing.T) {
			debug.FreeOSMemory()
			start := rssAnon(t)
			stop, peak := make(chan struct{}), make(chan int64)
			go func() {
				most := int64(0)
				for {
					select {
					case <-stop:
						peak <- most
						return
					case <-time.After(2 * time.Millisecond):
						most = max(most, rssAnon(t))
					}
				}
			}()
			_, err := Run(context.Background(), Options{Dir: dir, OutDir: t.TempDir(), OutType: tc.out, Workers: tc.workers})
			close(stop)
			grown := <-peak - start
			if err != nil {
				t.Fatal(err)
			}
			if grown <= 0 || grown > tc.limit {
				t.Errorf("anonymous memory grew by %d MiB, want at most %d", grown>>20, tc.limit>>20)
			}
		})
	}
}

// sparse writes a checkpoint with one BF16 tensor of zeros that take no disk.
func sparse(t *testing.T, shape ...int64) string {
	t.Helper()
	dir := t.TempDir()
	size := 2 * product(shape)
	header := fmt.Sprintf(`{"w.weight":{"dtype":"BF16","shape":[%d,%d,%d],"data_offsets":[0,%d]}}`, shape[0], shape[1], shape[2], size)
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	path := filepath.Join(dir, "model.safetensors")
	for name, content := range map[string][]byte{"config.json": []byte(`{"model_type":"copies"}`), "model.safetensors": data} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, int64(len(data))+size); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rssAnon returns the process's resident anonymous memory in bytes.
func rssAnon(t *testing.T) int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Error(err)
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), "RssAnon:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Error(err)
			}
			return kb << 10
		}
	}
	t.Error("no RssAnon in /proc/self/status")
	return 0
}
