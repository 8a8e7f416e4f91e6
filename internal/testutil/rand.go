package testutil

import (
	"hash/fnv"
	"math/rand/v2"
	"testing"
)

// Rand returns a generator that is seeded with the test's name: the same
// numbers in every run and on every machine, others in every test.
func Rand(t testing.TB) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(t.Name())) // a hash never returns an error
	return rand.New(rand.NewPCG(h.Sum64(), 0))
}

// Uniform draws n values from [lo, hi). Draw all inputs of a test from one
// generator, so that they differ.
func Uniform(r *rand.Rand, n int, lo, hi float32) []float32 {
	values := make([]float32, n)
	for i := range values {
		values[i] = lo + (hi-lo)*r.Float32()
	}
	return values
}
