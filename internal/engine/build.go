package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/binding"
)

// kvTypes are the types that keys and values can have in a cache.
var kvTypes = map[string]binding.DType{"f32": binding.F32, "f16": binding.F16, "bf16": binding.BF16, "q8_0": binding.Q8_0}

// ParseKV reads the name of a cache type; empty is f16.
func ParseKV(name string) (binding.DType, error) {
	if name == "" {
		return binding.F16, nil
	}
	t, ok := kvTypes[strings.ToLower(name)]
	if !ok {
		return 0, fmt.Errorf("cache type %q, want one of %s", name, strings.Join(slices.Sorted(maps.Keys(kvTypes)), ", "))
	}
	return t, nil
}

// Warning is empty if the program was built with SIMD kernels, else a line that
// says what to do.
func Warning() string { return binding.Warning() }
