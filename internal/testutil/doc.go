// Package testutil is for tests alone: reference values from testdata, and
// comparisons of float slices whose failure says where and by how much.
package testutil
