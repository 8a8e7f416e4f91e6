package inkling

import (
	"cmp"
	"os"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestReplay: on a GPU that records graphs nearly all of 50 decoding steps are
// replayed, on both sides of the edge where one more block of keys is looked at.
func TestReplay(t *testing.T) {
	devs, err := binding.FindDevices(cmp.Or(os.Getenv("INKLING_TEST_DEVICE"), "cpu"))
	if err != nil {
		t.Fatal(err)
	}
	if _, counts := devs[0].Replays(); !counts {
		t.Skipf("%s records no graphs", devs[0].Name())
	}
	m := loadRandom(t)
	c := newTestCache(t, m, 512, binding.F16)
	prompt := make([]int32, 230)
	for i := range prompt {
		prompt[i] = int32(i % 100)
	}
	forward(t, m, c, prompt, false)
	before, _ := devs[0].Replays()
	const steps = 50
	for i := range steps {
		forward(t, m, c, []int32{int32(i)}, false)
	}
	after, _ := devs[0].Replays()
	// Each of the two shapes is run directly once and recorded once.
	if did := after.Sub(before); did.Replayed < steps-4 {
		t.Errorf("%d steps: %+v, want %d replayed", steps, did, steps-4)
	}
}
