// Package gguf checks that other programs read what convert-inkling writes. It is a
// module of its own, so that their code is no dependency of the tools: make
// test-compat runs it, and downloads them the first time.
package gguf
