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

// TestFusedRowSums: also of one row, of rows twice, and of numbers that no row has, which are row 0.
func TestFusedRowSums(t *testing.T) {
	eachFusing(t, func(t *testing.T, be *binding.Backend) {
		for _, name := range []string{"f32", "f16", "bf16"} {
			for _, c := range []struct{ k, n, m int64 }{{12, 1, 1}, {1028, 5, 3}, {4096, 33, 80}} {
				t.Run(fmt.Sprintf("%s %+v", name, c), func(t *testing.T) {
					b := newBench(t, be)
					const rows = 37
					table, values := b.matrices(fusedTypes[name], c.k, rows)
					ids := make([]int32, c.n*c.m)
					for i := range ids {
						ids[i] = int32(b.rng.IntN(rows+2) - 1)
					}
					res, ok := FusedRowSums(b.g, table, b.inputI32(ids, c.n, c.m))
					if !ok {
						t.Fatal("not supported")
					}
					want := make([]float64, c.k*c.n)
					for i := range c.n {
						for j := range c.m {
							id := int64(ids[j*c.n+i])
							if id < 0 || id >= rows {
								id = 0
							}
							for q := range c.k {
								want[i*c.k+q] += float64(values[id*c.k+q])
							}
						}
					}
					closeTo(t, "sums", b.run(res)[0], want, 2e-5)
				})
			}
		}
	})
}
