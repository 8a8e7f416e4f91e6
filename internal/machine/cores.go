package machine

import (
	"os"
	"path/filepath"
	"runtime"
)

// Cores is the number of cores that this process may use, counting the
// hardware threads of one core once: ggml's threads wait for each other by
// spinning, so that two on one core slow each other down.
func Cores() int {
	n := runtime.GOMAXPROCS(0) // respects affinity and container limits
	siblings, err := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list")
	if err != nil || len(siblings) == 0 {
		return n
	}
	cores := map[string]bool{}
	for _, path := range siblings {
		list, err := os.ReadFile(path)
		if err != nil {
			return n
		}
		cores[string(list)] = true
	}
	return max(1, min(n, len(cores)))
}
