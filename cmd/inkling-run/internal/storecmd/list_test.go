package storecmd

import (
	"testing"
	"time"
)

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "just now", -time.Hour: "just now", 3 * time.Second: "3 seconds ago", 119 * time.Second: "119 seconds ago",
		5 * time.Hour: "5 hours ago", 36 * time.Hour: "36 hours ago", 10 * 24 * time.Hour: "10 days ago", 800 * 24 * time.Hour: "2 years ago",
	} {
		if got := ago(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
