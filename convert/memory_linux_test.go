package convert

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

// huge makes TestMemory convert 8 GB instead of 1, as make test-huge does.
var huge = flag.Bool("huge", false, "convert a checkpoint of 8 GB")

// TestMemory converts stacks of experts and samples the process's memory. In use are
// the workers' buffers and, of what is mapped, the headers, whatever the size of the
// checkpoint.
func TestMemory(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("writes a gigabyte and measures memory")
	}
	layers := int64(2)
	if *huge {
		layers = 16
	}
	dir := sparse(t, layers, 128, 1024, 2048) // 0.5 GB each
	for _, tc := range []struct {
		out     OutType
		workers int
		limit   int64 // bytes above the start
	}{
		{OutBF16, 2, 96 << 20},
		{OutQ8_0, 64, maxWorkBytes + 64<<20},
		{OutQ4_0, 2, 96 << 20},
	} {
		t.Run(fmt.Sprintf("%s/%d workers", tc.out, tc.workers), func(t *testing.T) {
			debug.FreeOSMemory()
			start := resident(t)
			stop, peak := make(chan struct{}), make(chan memory)
			go func() {
				var most memory
				for {
					select {
					case <-stop:
						peak <- most
						return
					case <-time.After(2 * time.Millisecond):
						now := resident(t)
						most = memory{max(most.anon, now.anon), max(most.file, now.file)}
					}
				}
			}()
			_, err := Run(context.Background(), Options{Dir: dir, OutDir: t.TempDir(), OutType: tc.out, Workers: tc.workers})
			close(stop)
			most := <-peak
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("grown by %d MiB of its own, %d MiB mapped", (most.anon-start.anon)>>20, (most.file-start.file)>>20)
			if grown := most.anon - start.anon; grown <= 0 || grown > tc.limit {
				t.Errorf("anonymous memory grew by %d MiB, want at most %d", grown>>20, tc.limit>>20)
			}
			if grown, limit := most.file-start.file, int64(64<<20); grown > limit {
				t.Errorf("mapped memory grew by %d MiB, want at most %d", grown>>20, limit>>20)
			}
		})
	}
}

// sparse writes a checkpoint with some BF16 tensors of zeros that take no disk.
func sparse(t *testing.T, n int64, shape ...int64) string {
	t.Helper()
	dir := t.TempDir()
	size := 2 * product(shape)
	header := make(map[string]any)
	for i := range n {
		header[fmt.Sprintf("w%d.weight", i)] = map[string]any{"dtype": "BF16", "shape": shape, "data_offsets": []int64{i * size, (i + 1) * size}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	path := filepath.Join(dir, "model.safetensors")
	for name, content := range map[string][]byte{"config.json": []byte(`{"model_type":"copies"}`), "model.safetensors": data} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, int64(len(data))+n*size); err != nil {
		t.Fatal(err)
	}
	return dir
}

// memory is what of a process is resident, in bytes.
type memory struct {
	anon int64 // its own
	file int64 // mapped files
}

// resident returns the memory of this process.
func resident(t *testing.T) memory {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Error(err)
		return memory{}
	}
	defer f.Close()
	var m memory
	for s := bufio.NewScanner(f); s.Scan(); {
		for name, value := range map[string]*int64{"RssAnon:": &m.anon, "RssFile:": &m.file} {
			if text, ok := strings.CutPrefix(s.Text(), name); ok {
				kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
				if err != nil {
					t.Error(err)
				}
				*value = kb << 10
			}
		}
	}
	return m
}
