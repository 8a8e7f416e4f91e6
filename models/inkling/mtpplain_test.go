package inkling

import (
	"fmt"
	"math"
	"testing"

	"github.com/inkling-go/inkling/internal/gguf"
)

// plainDepths computes layers for multi-token prediction from the tensors of their
// file in float64, all rows at once and one value after another, by the formulas of
// the reference and by nothing of this package: no graph, no cache, no ring.
type plainDepths struct {
	t           testing.TB
	text, ahead *gguf.File
}

// rows are vectors, one for each position.
type rows [][]float64

// tensor reads a tensor of F32.
func (p *plainDepths) tensor(f *gguf.File, name string) (values []float64, ne []int64) {
	p.t.Helper()
	info, ok := f.Tensor(name)
	if !ok {
		p.t.Fatalf("%s: no tensor %q", f.Path(), name)
	}
	x := make([]float32, info.Elems())
	if err := gguf.DecodeRows(info.Type, x, f.Bytes(info)); err != nil {
		p.t.Fatal(err)
	}
	for _, v := range x {
		values = append(values, float64(v))
	}
	return values, info.Dims
}

func (p *plainDepths) number(f *gguf.File, key string) float64 {
	p.t.Helper()
	if n, err := f.Uint(prefix + key); err == nil {
		return float64(n)
	}
	v, err := f.Float(prefix + key)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// product is W·x for each row x; W has the inputs of an output side by side.
func (p *plainDepths) product(f *gguf.File, name string, x rows) rows {
	p.t.Helper()
	w, ne := p.tensor(f, name)
	in, out := int(ne[0]), int(ne[1])
	y := make(rows, len(x))
	for r := range x {
		y[r] = make([]float64, out)
		for o := range out {
			for i, v := range x[r] {
				y[r][o] += w[o*in+i] * v
			}
		}
	}
	return y
}

// norm is the RMS norm of each group of len(w) values.
func (p *plainDepths) norm(f *gguf.File, name string, x rows) rows {
	p.t.Helper()
	w, _ := p.tensor(f, name)
	eps := p.number(p.text, "attention.layer_norm_rms_epsilon")
	y := make(rows, len(x))
	for r := range x {
		y[r] = make([]float64, len(x[r]))
		for from := 0; from < len(x[r]); from += len(w) {
			sum := 0.0
			for i := range w {
				sum += x[r][from+i] * x[r][from+i]
			}
			scale := 1 / math.Sqrt(sum/float64(len(w))+eps)
			for i := range w {
				y[r][from+i] = x[r][from+i] * scale * w[i]
			}
		}
	}
	return y
}

// conv is a short convolution with its inner residual.
func (p *plainDepths) conv(name string, u rows) rows {
	p.t.Helper()
	w, ne := p.tensor(p.ahead, name)
	k := int(ne[0])
	y := make(rows, len(u))
	for t := range u {
		y[t] = make([]float64, len(u[t]))
		for c := range u[t] {
			y[t][c] = u[t][c]
			for j := range k {
				if s := t - (k - 1) + j; s >= 0 {
					y[t][c] += w[c*k+j] * u[s][c]
				}
			}
		}
	}
	return y
}

func add(x, y rows) rows {
	for r := range x {
		for i := range x[r] {
			x[r][i] += y[r][i]
		}
	}
	return x
}

// attention is that of depth d; its row r is at position r+d+1.
func (p *plainDepths) attention(d int, blk string, a rows) rows {
	p.t.Helper()
	sliding, err := p.ahead.Bools(prefix + "attention.sliding_window_pattern")
	if err != nil {
		p.t.Fatal(err)
	}
	q := p.norm(p.ahead, blk+"attn_q_norm.weight", p.product(p.ahead, blk+"attn_q.weight", a))
	k := p.norm(p.ahead, blk+"attn_k_norm.weight", p.conv(blk+"shortconv_k.weight", p.product(p.ahead, blk+"attn_k.weight", a)))
	v := p.conv(blk+"shortconv_v.weight", p.product(p.ahead, blk+"attn_v.weight", a))
	rho := p.product(p.ahead, blk+"attn_r.weight", a)
	proj, ne := p.tensor(p.ahead, blk+"attn_rel_proj.weight")
	extent, dRel := int(ne[0]), int(ne[1])
	_, hd := p.tensor(p.ahead, blk+"attn_q_norm.weight")
	dh := int(hd[0])
	heads, kvHeads := len(q[0])/dh, len(k[0])/dh
	window := int(p.number(p.text, "attention.sliding_window"))
	out := make(rows, len(a))
	for t := range a {
		tau := 1.0
		if floor := p.number(p.text, "log_scaling_n_floor"); !sliding[d] && floor > 0 {
			tau += p.number(p.text, "log_scaling_alpha") * math.Log(max(float64(t+d+2)/floor, 1))
		}
		out[t] = make([]float64, heads*dh)
		for h := range heads {
			kv := h / (heads / kvHeads)
			var scores []float64
			first, most := 0, math.Inf(-1)
			if sliding[d] {
				first = max(0, t-window+1)
			}
			for s := first; s <= t; s++ {
				dot, bias := 0.0, 0.0
				for i := range dh {
					dot += q[t][h*dh+i] * k[s][kv*dh+i]
				}
				if t-s < extent {
					for m := range dRel {
						bias += rho[t][h*dRel+m] * proj[m*extent+t-s]
					}
				}
				scores = append(scores, tau*(dot/float64(dh)+bias))
				most = max(most, scores[len(scores)-1])
			}
			sum := 0.0
			for i := range scores {
				scores[i] = math.Exp(scores[i] - most)
				sum += scores[i]
			}
			for i, e := range scores {
				for j := range dh {
					out[t][h*dh+j] += e / sum * v[first+i][kv*dh+j]
				}
			}
		}
	}
	return p.product(p.ahead, blk+"attn_output.weight", out)
}

// depth is depth d over all rows: its output, after the norm between depths.
//
//	g: hidden states, which are after the final norm for d = 0
//	e: embeddings of the tokens d+1 further on, after the embedding's norm
func (p *plainDepths) depth(d int, g, e rows) rows {
	p.t.Helper()
	blk := fmt.Sprintf("blk.%d.", d)
	hn, en := p.norm(p.ahead, blk+"nextn.hnorm.weight", g), p.norm(p.ahead, blk+"nextn.enorm.weight", e)
	both := make(rows, len(g))
	for r := range both {
		both[r] = append(append(both[r], hn[r]...), en[r]...)
	}
	x := p.product(p.ahead, blk+"nextn.eh_proj.weight", both)
	y := p.attention(d, blk, p.norm(p.ahead, blk+"attn_norm.weight", x))
	x = add(x, p.conv(blk+"shortconv_attn.weight", y))
	b := p.norm(p.ahead, blk+"ffn_norm.weight", x)
	gate, up := p.product(p.ahead, blk+"ffn_gate.weight", b), p.product(p.ahead, blk+"ffn_up.weight", b)
	for r := range gate {
		for i, v := range gate[r] {
			gate[r][i] = v / (1 + math.Exp(-v)) * up[r][i]
		}
	}
	z := p.product(p.ahead, blk+"ffn_down.weight", gate)
	scale, _ := p.tensor(p.ahead, blk+"ffn_gscale.weight")
	for r := range z {
		for i := range z[r] {
			z[r][i] *= scale[0]
		}
	}
	return p.norm(p.ahead, "nextn_chain_norm.weight", add(x, p.conv(blk+"shortconv_mlp.weight", z)))
}

// embed gives the embeddings of tokens after their norm.
func (p *plainDepths) embed(ids []int32) rows {
	p.t.Helper()
	table, ne := p.tensor(p.text, "token_embd.weight")
	n := int(ne[0])
	var x rows
	for _, id := range ids {
		x = append(x, table[int(id)*n:(int(id)+1)*n])
	}
	return p.norm(p.text, "token_embd_norm.weight", x)
}

// likeliest is the token of the largest logit of a row; the division by a constant
// changes none.
func (p *plainDepths) likeliest(x []float64) int32 {
	p.t.Helper()
	logits := p.product(p.text, "output.weight", rows{x})[0][:int(p.number(p.text, "unpadded_vocab_size"))]
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int32(best)
}
