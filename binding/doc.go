// Package binding is the Go view of ggml: devices, tensors, memory, graphs, and
// one Graph method per ggml operation, with ggml's name and argument order.
//
// ggml answers a wrong shape with abort(), which no Go program can recover
// from. Every method here therefore checks what ggml would assert and panics
// with a *ShapeError instead: building a graph wrongly is a mistake of the
// programmer, and Guard turns it into an error at the border of the model code.
// Mistakes of users (files, flags, requests) never get this far.
//
// Shapes are written in ggml's order, fastest dimension first: [ne0, ne1, ne2, ne3].
//
// Ownership: a Backend, Memory, Allocator or Graph belongs to one goroutine and
// is freed by Close. Tensors belong to the Memory or Graph that made them. C
// keeps no Go pointer.
package binding

//go:generate go run nocgo_gen.go
