package server

import (
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"strconv"
	"strings"

	"github.com/inkling-go/inkling/internal/engine"
)

// writeHeap writes what C's malloc holds, if it says so: what of it is not in use is
// memory that neither a model nor Go has.
func writeHeap(x *exposition) {
	h, ok := engine.Heap()
	if !ok {
		return
	}
	x.family("inkling_heap_held_bytes", "gauge", "C's heap: what malloc has from the system, without mapped weights.")
	x.sample("inkling_heap_held_bytes", float64(h.Held))
	x.family("inkling_heap_used_bytes", "gauge", "C's heap in use: caches, graphs and their results.")
	x.sample("inkling_heap_used_bytes", float64(h.Used))
}

// writeRuntime writes what Go and the operating system say, with the names that
// Prometheus' own client gives it.
func writeRuntime(x *exposition) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	for _, g := range []struct {
		name, typ, help string
		value           float64
	}{
		{"go_goroutines", "gauge", "Goroutines.", float64(runtime.NumGoroutine())},
		{"go_memstats_heap_alloc_bytes", "gauge", "Go's heap in use.", float64(m.HeapAlloc)},
		{"go_gc_heap_live_bytes", "gauge", "Go's heap that the last garbage collection left.", liveBytes()},
		{"go_memstats_sys_bytes", "gauge", "Memory that Go has got from the system.", float64(m.Sys)},
		{"go_memstats_mallocs_total", "counter", "Allocations on Go's heap.", float64(m.Mallocs)},
		{"go_gc_cycles_total", "counter", "Garbage collections.", float64(m.NumGC)},
		{"process_resident_memory_bytes", "gauge", "Resident memory of the process, mapped weights included.", residentBytes()},
		{"process_cpu_seconds_total", "counter", "Time of processors, of ggml's threads too.", processorSeconds()},
		{"process_open_fds", "gauge", "Open file descriptors, connections included.", openFiles()},
	} {
		x.family(g.name, g.typ, g.help)
		x.sample(g.name, g.value)
	}
}

// processorSeconds sums the user and system time in /proc/self/stat, which counts
// hundredths of seconds; 0 where there is none.
func processorSeconds() float64 {
	data, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ") // the name of the program may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseFloat(fields[11], 64)
	system, err2 := strconv.ParseFloat(fields[12], 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (user + system) / 100
}

func liveBytes() float64 {
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(live)
	return float64(live[0].Value.Uint64())
}

// openFiles counts /proc/self/fd, without the descriptor that reads it; 0 where
// there is none.
func openFiles() float64 {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0
	}
	return float64(len(names) - 1)
}

// residentBytes reads the second field of /proc/self/statm, in pages; 0 where
// there is none.
func residentBytes() float64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return float64(pages * int64(os.Getpagesize()))
}
