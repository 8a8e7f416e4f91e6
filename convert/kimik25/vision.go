package kimik25

import (
	"fmt"

	"github.com/inkling-go/inkling/convert"
)

// towerNames are the names of the tower's and projector's tensors in one spelling,
// without .weight and .bias.
type towerNames struct {
	tower, block        string // prefixes; block is a format with the layer's number
	pos                 string // of the position table, whole
	norm1, norm2        string
	qkv                 []string // one with the rows of all three, or one each
	out, up, down, last string
	projector           string // prefix
	pre, first, second  string // below it
}

var (
	publishedTower = towerNames{
		tower: "vision_tower.", block: "encoder.blocks.%d.", pos: "patch_embed.pos_emb.weight",
		norm1: "norm0", norm2: "norm1", qkv: []string{"wqkv"}, out: "wo", up: "mlp.fc0", down: "mlp.fc1",
		last:      "encoder.final_layernorm",
		projector: "mm_projector.", pre: "pre_norm", first: "proj.0", second: "proj.2",
	}
	portTower = towerNames{
		tower: "model.vision_tower.", block: "layers.%d.", pos: "patch_embed.pos_emb.position_embeddings",
		norm1: "norm1", norm2: "norm2", qkv: []string{"attn.q_proj", "attn.k_proj", "attn.v_proj"}, out: "attn.proj",
		up: "mlp.fc1", down: "mlp.fc2", last: "final_layernorm",
		projector: "model.mm_projector.", pre: "pre_norm", first: "in_proj", second: "out_proj",
	}
)

// towerNames returns the spelling of the tower in this checkpoint; false if it has
// none.
func (p *planner) towerNames() (towerNames, bool) {
	n := publishedTower
	switch {
	case p.Src.Drawn() && p.c.vision != nil:
	case p.Src.HasPrefix(portTower.tower):
		n = portTower
	case !p.Src.HasPrefix(publishedTower.tower):
		return n, false
	}
	if p.c.vl {
		n.projector, n.first, n.second = "multi_modal_projector.", "linear_1", "linear_2"
		if p.Src.HasPrefix("model." + n.projector) {
			n.projector = "model." + n.projector
		}
	}
	return n, true
}

// visionTensors lists the tensors of the tower and its projector; none if the
// checkpoint has no tower.
func (p *planner) visionTensors() []convert.Tensor {
	n, ok := p.towerNames()
	v := p.c.vision
	switch {
	case !ok && v != nil:
		p.Notef("config.json has a vision_config but the checkpoint has no tower: no pictures")
		fallthrough
	case !ok:
		p.c.vision = nil
		return nil
	case v == nil:
		p.Failf("vision_config is missing, but there are tensors %s*", n.tower)
		return nil
	}
	d, h, merged := v.hidden, p.c.text.hiddenSize, v.merge*v.merge*v.hidden
	out := []convert.Tensor{
		p.rename("", n.tower, renamed{"v.patch_embd.weight", "patch_embed.proj.weight", []int64{d, channels, v.patch, v.patch}, true}),
		p.vector("v.patch_embd.bias", n.tower+"patch_embed.proj.bias", d),
		p.positions(n),
	}
	for il := range v.layers {
		gguf, block := fmt.Sprintf("v.blk.%d.", il), n.tower+fmt.Sprintf(n.block, il)
		out = append(out, p.norm(gguf+"ln1", block+n.norm1, d)...)
		out = append(out, p.qkv(gguf, block, n)...)
		out = append(out, p.linear(gguf+"attn_out", block+n.out, d, d)...)
		out = append(out, p.norm(gguf+"ln2", block+n.norm2, d)...)
		out = append(out, p.linear(gguf+"ffn_up", block+n.up, v.intermediate, d)...)
		out = append(out, p.linear(gguf+"ffn_down", block+n.down, d, v.intermediate)...)
	}
	out = append(out, p.norm("v.post_ln", n.tower+n.last, d)...)
	out = append(out, p.norm("mm.input_norm", n.projector+n.pre, d)...)
	out = append(out, p.linear("mm.1", n.projector+n.first, merged, merged)...)
	return append(out, p.linear("mm.2", n.projector+n.second, h, merged)...)
}

// positions looks up the table of learned positions, [row, column, channel]. The
// format of Kimi-VL has the grid as one axis.
func (p *planner) positions(n towerNames) convert.Tensor {
	v := p.c.vision
	dims := []int64{v.hidden, v.posWidth, v.posHeight}
	if p.c.vl {
		dims = []int64{v.hidden, v.posWidth * v.posHeight}
	}
	t := p.Match.Find("v.position_embd.weight", dims,
		convert.Spelling{Name: n.tower + n.pos, Shape: []int64{v.posHeight, v.posWidth, v.hidden}})
	t.F32 = true
	return t
}

// linear looks up a matrix [out, in] and its bias.
func (p *planner) linear(gguf, source string, out, in int64) []convert.Tensor {
	return []convert.Tensor{
		p.rename("", "", renamed{gguf + ".weight", source + ".weight", []int64{out, in}, false}),
		p.vector(gguf+".bias", source+".bias", out),
	}
}

// norm looks up a layer norm: scale and shift.
func (p *planner) norm(gguf, source string, n int64) []convert.Tensor {
	return []convert.Tensor{p.vector(gguf+".weight", source+".weight", n), p.vector(gguf+".bias", source+".bias", n)}
}

// vector looks up a vector.
func (p *planner) vector(gguf, source string, n int64) convert.Tensor {
	return p.Match.Find(gguf, []int64{n}, convert.Spelling{Name: source, Shape: []int64{n}})
}
