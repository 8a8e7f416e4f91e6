package binding

// #include "bridge.h"
import "C"

// Replays is how often a device that can record graphs replayed one as a whole,
// recorded one, and ran one node by node, since the program started.
type Replays struct {
	Replayed int64 `json:"replayed"`
	Recorded int64 `json:"recorded"`
	Direct   int64 `json:"direct"`
	Launches int64 `json:"launches"` // kernels, copies and fills of all that were replayed
}

// Sub is what was added to earlier numbers.
func (r Replays) Sub(before Replays) Replays {
	return Replays{r.Replayed - before.Replayed, r.Recorded - before.Recorded, r.Direct - before.Direct, r.Launches - before.Launches}
}

// Replays adds up the devices of the module that d belongs to. ok is false if it does
// not count: that of make cuda does.
func (d Device) Replays() (r Replays, ok bool) {
	var counts [4]C.int64_t
	if !C.inkling_graph_counts(d.dev, &counts[0]) {
		return Replays{}, false
	}
	return Replays{int64(counts[0]), int64(counts[1]), int64(counts[2]), int64(counts[3])}, true
}
