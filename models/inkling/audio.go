package inkling

import "github.com/inkling-go/inkling/binding"

// audio is the dMel tower: each mel band of a frame picks a row of the table by
// its loudness, the rows are added up and normed. One frame is one row.
type audio struct {
	Embd *binding.Tensor `gguf:"a.dmel.embedding.weight" ne:"n_embd,rows"` // rows = mels·bins
	Norm *binding.Tensor `gguf:"a.dmel.final_norm.weight,f32" ne:"n_embd"`

	mels, bins int
	eps        float32
}

// build records the tower for the frames that ids describe.
//
//	ids: [mels*n]      I32
//	res: [n_embd, n]
func (a *audio) build(g *binding.Graph, ids *binding.Tensor) *binding.Tensor {
	embd, mels := a.Embd.Dim(0), int64(a.mels)
	n := ids.Dim(0) / mels
	rows := g.Reshape(g.GetRows(a.Embd, ids), embd, mels, n)
	return g.RMSNorm(g.Reshape(sumBands(g, rows), embd, n), a.Norm, a.eps)
}

// sumBands adds up the rows of each frame: one half to the other as long as there are
// two, then those that are left one by one. SUM_ROWS would want them transposed, and
// takes eight times as long on the CPU.
//
//	rows: [n_embd, mels, n]   F32
//	res:  [n_embd, 1, n]
func sumBands(g *binding.Graph, rows *binding.Tensor) *binding.Tensor {
	embd, n := rows.Dim(0), rows.Dim(2)
	row := embd * binding.F32.Size()
	part := func(x *binding.Tensor, first, count int64) *binding.Tensor {
		frame := x.Dim(1) * row
		return g.View(x, [4]int64{embd, count, n, 1}, row, frame, n*frame, first*row)
	}
	for rows.Dim(1)%2 == 0 {
		half := rows.Dim(1) / 2
		rows = g.Add(part(rows, 0, half), part(rows, half, half))
	}
	sum := part(rows, 0, 1)
	for i := int64(1); i < rows.Dim(1); i++ {
		sum = g.Add(sum, part(rows, i, 1))
	}
	return sum
}

// rowIDs are the rows of the table that dMel levels pick.
//
//	levels: [mels] of each frame, 0..bins-1
//	res:    [mels] of each frame: mel·bins + level
func rowIDs(levels []int32, mels, bins int) []int32 {
	ids := make([]int32, len(levels))
	for i, level := range levels {
		ids[i] = int32(i%mels*bins) + level
	}
	return ids
}
