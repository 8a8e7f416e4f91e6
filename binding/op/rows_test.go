package op

import (
	"fmt"
	"testing"

	"github.com/inkling-go/inkling/binding"
)

// TestFusedRows: rows of quantised tables are those that Dequantise gives.
func TestFusedRows(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, name := range []string{"q4_0", "q3_K", "q4_K", "q5_K", "q6_K", "iq4_xs"} {
			typ := fusedTypes[name]
			for _, ids := range [][]int32{{6}, {0, 3, 6, 3, 1}} {
				t.Run(fmt.Sprintf("%s, %d rows", typ, len(ids)), func(t *testing.T) {
					b := newBench(t, be)
					const k, rows = 768, 7
					raw := encoded(t, typ, b.floats(1, k, rows), k)
					all := make([]float32, k*rows)
					if err := binding.Dequantise(typ, all, raw); err != nil {
						t.Fatal(err)
					}
					table, err := b.mem.New("table", typ, k, rows)
					if err != nil {
						t.Fatal(err)
					}
					b.set = append(b.set, func() { table.SetBytes(raw, 0) })
					res := b.g.Fused(binding.FusedRows, binding.F32, [4]int64{k, int64(len(ids)), 1, 1}, nil, table, b.inputI32(ids, int64(len(ids))))
					var want []float64
					for _, id := range ids {
						for _, v := range all[int(id)*k : int(id+1)*k] {
							want = append(want, float64(v))
						}
					}
					closeTo(t, "rows", b.run(res)[0], want, 1e-6)
				})
			}
		}
	})
}
