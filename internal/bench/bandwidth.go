package bench

import (
	"context"
	"sync"
	"time"

	"github.com/inkling-go/inkling/binding"
)

// How the bandwidth is measured: one buffer for each thread, together far larger
// than caches, read several times.
const (
	bandwidthBytes  = 1 << 30
	bandwidthRounds = 5
	cacheLine       = 64
)

// Bandwidth measures how many bytes a second threads of this machine read from
// memory together, the best of some rounds. It takes 1 GiB meanwhile.
func Bandwidth(ctx context.Context, threads int) (float64, error) {
	return bandwidth(ctx, threads, bandwidthBytes)
}

func bandwidth(ctx context.Context, threads, size int) (float64, error) {
	words := size / 8 / threads &^ 63
	buffers := make([][]uint64, threads)
	var wg sync.WaitGroup
	for i := range buffers {
		wg.Go(func() {
			b := make([]uint64, words)
			for j := range b { // takes the pages, near the thread
				b[j] = uint64(j)
			}
			buffers[i] = b
		})
	}
	wg.Wait()
	best := 0.0
	sums := make([]uint64, threads*cacheLine/8)
	for range bandwidthRounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := time.Now()
		for i, b := range buffers {
			wg.Go(func() { sums[i*cacheLine/8] += sum(b) })
		}
		wg.Wait()
		bytes := float64(threads * words * 8)
		best = max(best, bytes/time.Since(start).Seconds())
	}
	return best, nil
}

// sum adds up words, a multiple of 64 of them. Eight independent sums over a cache
// line each keep several loads in flight, so that memory and not the adder is waited
// for; arrays spare the bounds checks.
func sum(b []uint64) uint64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 uint64
	for ; len(b) >= 64; b = b[64:] {
		c := (*[64]uint64)(b)
		s0 += c[0] + c[1] + c[2] + c[3] + c[4] + c[5] + c[6] + c[7]
		s1 += c[8] + c[9] + c[10] + c[11] + c[12] + c[13] + c[14] + c[15]
		s2 += c[16] + c[17] + c[18] + c[19] + c[20] + c[21] + c[22] + c[23]
		s3 += c[24] + c[25] + c[26] + c[27] + c[28] + c[29] + c[30] + c[31]
		s4 += c[32] + c[33] + c[34] + c[35] + c[36] + c[37] + c[38] + c[39]
		s5 += c[40] + c[41] + c[42] + c[43] + c[44] + c[45] + c[46] + c[47]
		s6 += c[48] + c[49] + c[50] + c[51] + c[52] + c[53] + c[54] + c[55]
		s7 += c[56] + c[57] + c[58] + c[59] + c[60] + c[61] + c[62] + c[63]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}

// How the memory of a device is measured: so many bytes are copied so many times in
// one graph. Longer copies than 2 GiB there are none.
const (
	copyBytes = 1 << 30
	copyTimes = 16
)

// CopyBandwidth measures how many bytes a second a device moves within its memory,
// read and written ones added up, the best of some rounds. It takes 2 GiB of it.
func CopyBandwidth(ctx context.Context, be *binding.Backend) (float64, error) {
	return copyBandwidth(ctx, be, copyBytes)
}

func copyBandwidth(ctx context.Context, be *binding.Backend, size int64) (_ float64, err error) {
	mem := be.NewMemory(2)
	defer mem.Close()
	var ts [2]*binding.Tensor
	for i, name := range []string{"from", "to"} {
		if ts[i], err = mem.New(name, binding.F32, size/4); err != nil {
			return 0, err
		}
	}
	if err := mem.Alloc(); err != nil {
		return 0, err
	}
	g := be.NewGraph(2 * copyTimes)
	defer g.Close()
	for range copyTimes {
		g.Expand(g.Cpy(ts[0], ts[1]))
	}
	a := be.NewAllocator()
	defer a.Close()
	if err := g.Alloc(a); err != nil {
		return 0, err
	}
	best := 0.0
	for range bandwidthRounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := g.Compute(); err != nil {
			return 0, err
		}
		best = max(best, float64(2*size*copyTimes)/time.Since(start).Seconds())
	}
	return best, nil
}
