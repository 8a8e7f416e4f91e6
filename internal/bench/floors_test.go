package bench

import (
	"context"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestFloors: the products of a step are nodes of it, and take time.
func TestFloors(t *testing.T) {
	s := madeUp(t, "q8_0", "inkling-tiny-random", "original", "config.json")
	for _, rows := range []int{1, 20} {
		f, err := s.Floors(context.Background(), Options{UBatch: 64, KV: binding.F16}, rows, 3, 2)
		if err != nil {
			t.Fatal(err)
		}
		ops := map[string]OpTime{}
		nodes := 0
		for _, op := range f.Ops {
			ops[op.Op] = op
			nodes += op.Nodes
		}
		// With this project's kernels or with ggml's.
		if ops["MUL_MAT"].Nodes == 0 || ops["MUL_MAT_ID"].Nodes+ops["EXPERTS"].Nodes == 0 || nodes > f.Nodes {
			t.Errorf("%d rows: operations %v of a graph of %d nodes", rows, f.Ops, f.Nodes)
		}
		if f.Step <= 0 || f.Bare <= 0 {
			t.Errorf("%d rows: a step of %g s, products of %g s", rows, f.Step, f.Bare)
		}
		if (f.Bytes > 0) != (rows == 1) {
			t.Errorf("%d rows: %d bytes", rows, f.Bytes)
		}
	}
}
