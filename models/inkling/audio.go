package inkling

import (
	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/binding/op"
	"github.com/inkling-go/inkling/models/layers"
)

// audio is the dMel tower: each mel band of a frame picks a row of the table by
// its loudness, the rows are added up and normed. One frame is one row.
type audio struct {
	Embd *binding.Tensor `gguf:"a.dmel.embedding.weight" ne:"n_embd,rows"` // rows = mels·bins
	Norm *binding.Tensor `gguf:"a.dmel.final_norm.weight,f32" ne:"n_embd"`

	mels, bins int
	eps        float32
}

// bandsPerLookup is how many bands of each frame are looked up and added up at once. Of all
// bands the rows would take hundreds of megabytes on a GPU, and leave the caches of a CPU;
// of fewer there would be more nodes, at each of which all threads wait for each other.
const bandsPerLookup = 8

// build records the tower for the frames that ids describe.
//
//	ids: [n, mels]     I32
//	res: [n_embd, n]
func (a *audio) build(g *binding.Graph, ids *binding.Tensor) *binding.Tensor {
	if sum, ok := op.FusedRowSums(g, a.Embd, ids); ok {
		return g.RMSNorm(sum, a.Norm, a.eps)
	}
	n, mels := ids.Dim(0), ids.Dim(1)
	ids = g.Reshape(ids, n*mels)
	var sum *binding.Tensor
	for band := int64(0); band < mels; band += bandsPerLookup {
		count := min(bandsPerLookup, mels-band)
		rows := sumBands(g, g.GetRows(a.Embd, g.Cols(ids, band*n, count*n)), n)
		if sum == nil {
			sum = rows
		} else {
			sum = g.Add(sum, rows)
		}
	}
	return g.RMSNorm(sum, a.Norm, a.eps)
}

// nodes is room for what build adds to a graph: of each lookup a view, its rows, at most two
// views and a sum for each of its bands, and of all of them the ids, their shape and the norm.
func (a *audio) nodes() int {
	lookups := (a.mels + bandsPerLookup - 1) / bandsPerLookup
	return lookups*(2+3*bandsPerLookup) + 4
}

// sumBands adds up the rows of each frame: one half to the other as long as there are
// two, then those that are left one by one. SUM_ROWS would want them transposed, and
// takes eight times as long on the CPU.
//
//	rows: [n_embd, n*bands]   F32, n frames of the first band before those of the second
//	res:  [n_embd, n]
func sumBands(g *binding.Graph, rows *binding.Tensor, n int64) *binding.Tensor {
	for rows.Dim(1)/n%2 == 0 {
		half := rows.Dim(1) / 2
		rows = g.Add(g.Rows(rows, 0, half), g.Rows(rows, half, half))
	}
	sum := g.Rows(rows, 0, n)
	for at := n; at < rows.Dim(1); at += n {
		sum = g.Add(sum, g.Rows(rows, at, n))
	}
	return sum
}

// rowIDs are the rows of the table that dMel levels pick, by band, in dst if that has room.
//
//	levels: [mels] of each of n frames, 0..bins-1
//	res:    [n] of each band: mel·bins + level
func (a *audio) rowIDs(dst, levels []int32) []int32 {
	n := len(levels) / a.mels
	ids := layers.Room(dst, len(levels))
	for mel := range a.mels {
		for i := range n {
			ids[mel*n+i] = int32(mel*a.bins) + levels[i*a.mels+mel]
		}
	}
	return ids
}
