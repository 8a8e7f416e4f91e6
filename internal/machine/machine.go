// Package machine says what the computer is: the processor's name and cores, how much
// memory there is for this process, and how much room on a disk.
package machine

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Memory is the machine's memory in bytes.
type Memory struct {
	Total int64 `json:"total"` // of the machine, or of the container if that has less
	// Available is what can be had without swapping: free memory and the pages of
	// files that can be dropped, or what is left of the container's limit.
	Available int64 `json:"available"`
}

// CPU is the processor's own name, and the architecture where it has none to tell.
func CPU() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for _, key := range []string{"model name", "Model", "cpu model", "Hardware"} {
			if v := field(data, key); v != "" {
				return v
			}
		}
	}
	return runtime.GOARCH
}

// ReadMemory reads /proc/meminfo and the limits of the control groups that the
// process is in. ok is false where there is no such thing.
func ReadMemory() (m Memory, ok bool) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, false
	}
	m.Total, m.Available = kilobytes(data, "MemTotal"), kilobytes(data, "MemAvailable")
	if m.Total == 0 {
		return m, false
	}
	for _, dir := range controlGroups() {
		m.limit(dir)
	}
	return m, true
}

// limit applies the limit of one control group, version 2 or 1. Pages of files
// count as used in it, although they are dropped when memory is wanted.
func (m *Memory) limit(dir string) {
	for _, f := range [][2]string{{"memory.max", "memory.current"}, {"memory.limit_in_bytes", "memory.usage_in_bytes"}} {
		most, ok := number(filepath.Join(dir, f[0]))
		if !ok || most >= m.Total { // "max", and the huge number of version 1
			continue
		}
		m.Total = most
		used, ok := number(filepath.Join(dir, f[1]))
		if !ok {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
		for _, key := range []string{"inactive_file", "active_file"} {
			used -= lineNumber(stat, key)
		}
		m.Available = min(m.Available, most-max(used, 0))
	}
}

// controlGroups are the folders of the groups that limit this process: its own and
// all above it.
func controlGroups() []string {
	const root = "/sys/fs/cgroup"
	dirs := []string{root, filepath.Join(root, "memory")}
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return dirs
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[1] != "" && !strings.Contains(parts[1], "memory") {
			continue
		}
		base := root
		if parts[1] != "" {
			base = filepath.Join(root, "memory")
		}
		for p := filepath.Clean("/" + parts[2]); p != "/"; p = filepath.Dir(p) {
			dirs = append(dirs, filepath.Join(base, p))
		}
	}
	return dirs
}

// Resident is the memory of this process that no file backs (RssAnon), in bytes; 0
// where the system does not say.
func Resident() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return kilobytes(data, "RssAnon")
}

// field finds "key : value" in the form of /proc.
func field(data []byte, key string) string {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kilobytes finds "key: n kB" and returns bytes, 0 if it is not there.
func kilobytes(data []byte, key string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(field(data, key), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// number reads a file that holds one number.
func number(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// lineNumber finds "key n", 0 if it is not there.
func lineNumber(data []byte, key string) int64 {
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == key {
			n, err := strconv.ParseInt(value, 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}
