// Package newmodel shows what a new architecture takes: docs/adding-a-model.md
// walks through it. The architecture is made up. Its next token depends on the
// last one alone, so that everything but the attention is there: tensors and keys,
// layers, a cache, steps of several sequences. No program links it in.
package newmodel
