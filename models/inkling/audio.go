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
	sum := g.SumRows(g.Cont(g.Permute(rows, 1, 0, 2, 3))) // [1, n_embd, n]
	return g.RMSNorm(g.Reshape(sum, embd, n), a.Norm, a.eps)
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
