//go:build ggml_dir

package ggml

// Built with make GGML_DIR=…: the headers are that tree's, linked at
// build/include; the shared libraries lie in build/ggml/lib.

// #cgo CFLAGS: -I${SRCDIR}/../build/include
// #cgo LDFLAGS: -L${SRCDIR}/../build/ggml/lib -Wl,-rpath,${SRCDIR}/../build/ggml/lib -lggml -lggml-cpu -lggml-base -lm
import "C"

// Source says where this build's ggml comes from.
const Source = "external (GGML_DIR)"
