package chat

import (
	"fmt"
	"strconv"
	"strings"
)

// defaultEffort is the reasoning effort of requests that name none.
const defaultEffort = "high"

// maxEffort is the highest effort the models know.
const maxEffort = 0.99

// effortLevels are the named efforts.
var effortLevels = map[string]float64{
	"none": 0, "minimal": 0.1, "low": 0.2, "medium": 0.7, "high": 0.9, "xhigh": maxEffort, "max": maxEffort,
}

// ParseEffort reads a reasoning effort: none, minimal, low, medium, high, xhigh, max, or a number from 0 to 0.99. The empty string
// is the default, high.
func ParseEffort(s string) (float64, error) {
	name := strings.ToLower(strings.TrimSpace(s))
	if name == "" {
		name = defaultEffort
	}
	if f, ok := effortLevels[name]; ok {
		return f, nil
	}
	f, err := strconv.ParseFloat(name, 64)
	if err != nil || !(f >= 0 && f <= maxEffort) {
		return 0, fmt.Errorf("reasoning effort %q, want none, minimal, low, medium, high, xhigh, max or a number from 0 to 0.99", s)
	}
	return f, nil
}

// formatEffort prints an effort with at most two decimals; zero is the given spelling, about which the templates in use differ.
func formatEffort(f float64, zero string) string {
	s := strconv.FormatFloat(f, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "0" || s == "" {
		return zero
	}
	return s
}
