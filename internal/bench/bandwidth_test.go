package bench

import (
	"context"
	"errors"
	"testing"
)

func TestSum(t *testing.T) {
	b := make([]uint64, 64*7)
	want := uint64(0)
	for i := range b {
		b[i] = uint64(i) * 0x9E3779B97F4A7C15
		want += b[i]
	}
	if got := sum(b); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestBandwidth: any machine of the last decades reads between these.
func TestBandwidth(t *testing.T) {
	got, err := bandwidth(t.Context(), 1, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f GB/s", got/1e9)
	if got < 1e8 || got > 1e13 {
		t.Errorf("%g bytes a second", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bandwidth(ctx, 1, 1<<20); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}
