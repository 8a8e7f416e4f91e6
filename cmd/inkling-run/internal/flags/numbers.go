package flags

import (
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/inkling-go/inkling/cmd/inkling-run/internal/usage"
)

// CheckCounts refuses options that count something and are below 1, and more
// threads than the machine has: ggml's wait for each other by spinning.
func CheckCounts(c *cli.Context, names ...string) error {
	for _, name := range names {
		n := c.Int(name)
		if c.IsSet(name) && n < 1 {
			return usage.Errorf("--%s %d: want at least 1", name, n)
		}
		if cores := runtime.NumCPU(); name == "threads" && n > cores {
			return usage.Errorf("--threads %d: this machine has %d cores", n, cores)
		}
	}
	return nil
}

// CheckAtMost refuses an option that is above the limit.
func CheckAtMost(c *cli.Context, name string, limit int) error {
	if n := c.Int(name); n > limit {
		return usage.Errorf("--%s %d: want at most %d", name, n, limit)
	}
	return nil
}

// CheckValues refuses options that were given without a value, as by a variable
// of a shell that is not set: without the option something else may be meant.
func CheckValues(c *cli.Context, names ...string) error {
	for _, name := range names {
		if c.IsSet(name) && c.String(name) == "" {
			return usage.Errorf("--%s: the value is empty", name)
		}
	}
	return nil
}
