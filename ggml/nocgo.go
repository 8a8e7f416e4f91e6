//go:build !cgo

package ggml

// Source says where this build's ggml comes from.
const Source = "nowhere: built without cgo"

// Features lists no extensions.
func Features() []string { return nil }

// Warning says why nothing can be computed.
func Warning() string { return "built without cgo and so without ggml" }
