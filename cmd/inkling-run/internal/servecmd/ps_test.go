package servecmd

import (
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "now", 90 * time.Second: "in 1m30s", 20 * 365 * 24 * time.Hour: "for ever",
	} {
		if got := until(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestProcessor(t *testing.T) {
	for _, tt := range []struct {
		size, vram int64
		want       string
	}{{100, 0, "CPU"}, {100, 100, "GPU"}, {100, 150, "GPU"}, {100, 25, "75% CPU, 25% GPU"}, {0, 0, "CPU"}} {
		if got := processor(loadedModel{Size: tt.size, SizeVRAM: tt.vram}); got != tt.want {
			t.Errorf("%d of %d is %q, want %q", tt.vram, tt.size, got, tt.want)
		}
	}
}
