//go:build !ggml_dir

package ggml

// The two include paths name the same headers: the first is a link that make
// keeps in build/, the second is where the module cache puts ggml when this
// module is itself a dependency or was installed by go install.

// #cgo CFLAGS: -I${SRCDIR}/../build/include -I${SRCDIR}/../../../ollama/ollama@v0.24.0/ml/backend/ggml/ggml/include
// #cgo LDFLAGS: -lm
import "C"

// ggml itself, compiled by cgo from the pinned module. Its init installs a log
// callback of its own; package binding replaces it.
import _ "github.com/ollama/ollama/ml/backend/ggml/ggml/src"

// Source says where this build's ggml comes from.
const Source = "github.com/ollama/ollama v0.24.0 (ggml of llama.cpp ec98e2002)"
