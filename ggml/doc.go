// Package ggml decides which ggml the program is built with: by default the
// copy inside a pinned Go module, compiled by cgo; with the build tag ggml_dir
// an external tree that make has built as shared libraries. README.md in this
// folder says how to exchange it. Package binding is the only importer.
package ggml
