package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestReadMemory(t *testing.T) {
	m, ok := ReadMemory()
	if !ok {
		t.Skip("no /proc/meminfo")
	}
	if m.Total < 64<<20 || m.Available <= 0 || m.Available > m.Total {
		t.Errorf("%d of %d bytes", m.Available, m.Total)
	}
	if n := Resident(); n < 1<<16 || n > m.Total {
		t.Errorf("resident %d of %d bytes", n, m.Total)
	}
	if CPU() == "" {
		t.Error("no name of the processor")
	}
}

func TestCores(t *testing.T) {
	if n := Cores(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("%d cores of %d hardware threads", n, runtime.NumCPU())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if n := Cores(); n != 1 {
		t.Errorf("%d cores for a process that may use one", n)
	}
}

func TestLimit(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  Memory
	}{
		{"none", nil, Memory{1000, 600}},
		{"no limit", map[string]string{"memory.max": "max\n", "memory.current": "7\n"}, Memory{1000, 600}},
		{"version 1 without one", map[string]string{"memory.limit_in_bytes": "9223372036854771712\n"}, Memory{1000, 600}},
		{"limit", map[string]string{"memory.max": "500\n", "memory.current": "300\n", "memory.stat": "anon 100\ninactive_file 40\nactive_file 60\n"}, Memory{500, 300}},
		{"version 1", map[string]string{"memory.limit_in_bytes": "500\n", "memory.usage_in_bytes": "450\n"}, Memory{500, 50}},
		{"the machine has less", map[string]string{"memory.max": "900\n", "memory.current": "0\n"}, Memory{900, 600}},
		{"usage unknown", map[string]string{"memory.max": "700\n"}, Memory{700, 600}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tc.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			m := Memory{1000, 600}
			m.limit(dir)
			if m != tc.want {
				t.Errorf("got %+v, want %+v", m, tc.want)
			}
		})
	}
}
