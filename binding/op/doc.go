// Package op holds the operations that ggml does not have as nodes of its own:
// compositions of ggml nodes, so that every backend that has the nodes has the
// operation. Each lies in a file of its own, with a float64 reference and a
// table of shapes in its test; the test runs on every device present.
package op
