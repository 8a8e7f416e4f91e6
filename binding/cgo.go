package binding

// The headers' places are those of package ggml, whose cgo flags do not reach here.

// #cgo CFLAGS: -I${SRCDIR}/../build/include -I${SRCDIR}/../../../ollama/ollama@v0.24.0/ml/backend/ggml/ggml/include
import "C"
