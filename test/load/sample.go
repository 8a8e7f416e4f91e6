package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sample is what /metrics says at a time, summed over models.
type sample struct {
	at         time.Duration // since the load began
	rss        float64       // bytes
	heap       float64       // of Go, what is in use after a garbage collection
	saved      float64       // states of earlier prompts, bounded by --cache-ram
	cache      float64       // keys, values and states of the sequences, bytes of C
	held       float64       // C's heap, the caches included; 0 where it does not say
	used       float64       // of it, what is in use
	goroutines float64
	fds        float64
	active     float64
	waiting    float64
	generated  float64 // tokens since the server began
	seconds    float64 // of processors, likewise
}

// parseSample reads Prometheus' text format.
func parseSample(data []byte) (s sample, err error) {
	fields := map[string]*float64{
		"process_resident_memory_bytes": &s.rss, "go_gc_heap_live_bytes": &s.heap, "go_goroutines": &s.goroutines, "process_open_fds": &s.fds,
		"inkling_requests_active": &s.active, "inkling_requests_waiting": &s.waiting, "inkling_generated_tokens_total": &s.generated,
		"process_cpu_seconds_total": &s.seconds, "inkling_heap_held_bytes": &s.held, "inkling_heap_used_bytes": &s.used,
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || line[0] == '#' {
			continue
		}
		name, labels, _ := strings.Cut(line[:at], "{")
		to := fields[name]
		if name == "inkling_memory_bytes" {
			switch {
			case strings.Contains(labels, `kind="saved"`):
				to = &s.saved
			case strings.Contains(labels, `kind="cache"`):
				to = &s.cache
			}
		}
		if to == nil {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return s, fmt.Errorf("/metrics: %q: %w", line, err)
		}
		*to += v
	}
	if s.rss == 0 || s.goroutines == 0 {
		return s, fmt.Errorf("/metrics has no resident memory or no goroutines:\n%.500s", data)
	}
	return s, nil
}

// watch takes a sample every now and then until ctx ends. Times without an answer,
// as of a server that was killed, are left out.
func watch(ctx context.Context, s *server, every time.Duration) []sample {
	var all []sample
	start := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return all
		case <-tick.C:
		}
		if m, err := s.metrics(ctx); err == nil {
			m.at = time.Since(start)
			all = append(all, m)
		}
	}
}

// printSamples writes a table of at most a dozen samples.
func printSamples(w io.Writer, all []sample) {
	fmt.Fprintln(w, "  seconds  RSS MiB  heap MiB  saved MiB  cache MiB  C held  C used  goroutines  fds  active  waiting")
	step := max(1, len(all)/12)
	for i := 0; i < len(all); i += step {
		m := all[i]
		fmt.Fprintf(w, "%9.0f %8.1f %9.1f %10.1f %10.1f %7.1f %7.1f %11.0f %4.0f %7.0f %8.0f\n", m.at.Seconds(), m.rss/(1<<20), m.heap/(1<<20), m.saved/(1<<20),
			m.cache/(1<<20), m.held/(1<<20), m.used/(1<<20), m.goroutines, m.fds, m.active, m.waiting)
	}
}

// growth is how much a value has grown from the second to the last third of the
// samples, by their medians: the first third is warm-up.
func growth(all []sample, of func(sample) float64) (before, after float64) {
	third := len(all) / 3
	return medianOf(all[third:2*third], of), medianOf(all[2*third:], of)
}

func medianOf(all []sample, of func(sample) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	return of(slices.SortedFunc(slices.Values(all), func(a, b sample) int { return cmp.Compare(of(a), of(b)) })[len(all)/2])
}

// checkFlat is an error if memory grows under a steady load. What is saved of
// prompts has a bound of its own and is not counted.
func checkFlat(all []sample) error {
	const percent, least = 4, 12 << 20 // more than a garbage collector's waves
	if len(all) < 9 {
		return fmt.Errorf("%d samples are too few to see growth", len(all))
	}
	if most := slices.MaxFunc(all, func(a, b sample) int { return cmp.Compare(a.saved, b.saved) }); most.saved > cacheRAM {
		return fmt.Errorf("%.1f MiB of states are saved, more than --cache-ram", most.saved/(1<<20))
	}
	before, after := growth(all, func(m sample) float64 { return m.rss - m.saved })
	if after-before > max(least, before*percent/100) {
		return fmt.Errorf("resident memory grows from %.1f to %.1f MiB", before/(1<<20), after/(1<<20))
	}
	return nil
}
