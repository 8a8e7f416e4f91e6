package inkling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inkling-go/inkling/convert"
)

// mtpPrefixes begin the names of the layers for multi-token prediction, as published
// and as in the port's two classes.
var mtpPrefixes = []string{"model.mtp.", "mtp.", "model.language_model.mtp."}

// isMTP reports whether a tensor belongs to the layers for multi-token prediction.
// They are no part of the text file: other readers abort on tensors beyond the
// trunk's.
func isMTP(name string) bool {
	return slices.ContainsFunc(mtpPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Optional reports that the layers for multi-token prediction need not be there.
func (arch) Optional(tensor string) bool { return isMTP(tensor) }

// mtpConfig says how the layers for multi-token prediction are stacked.
type mtpConfig struct {
	depths    int64 // 0 if not given: the tensors tell
	chainNorm bool
	localIDs  []int64
	known     bool // localIDs is given
}

// parseMTP reads mtp_config, or the port's words for it in the text config.
func parseMTP(f, text *convert.Fields) mtpConfig {
	if m := f.Object("mtp_config"); m != nil {
		return mtpConfig{
			m.IntOr(0, "num_nextn_predict_layers"), m.BoolOr(false, "chain_hidden_post_norm"),
			m.Ints("local_layer_ids"), m.Has("local_layer_ids"),
		}
	}
	return mtpConfig{
		text.IntOr(0, "num_mtp_layers"), text.BoolOr(false, "chain_hidden_post_norm"),
		text.Ints("mtp_local_layer_ids"), text.Has("mtp_local_layer_ids"),
	}
}

// mtpNames are the names of what a depth has beside its layer, and of its layer.
type mtpNames struct {
	embedNorm, hiddenNorm, projection string
	layer                             string
	chainNorm                         string // below the prefix
}

var (
	publishedMTP = mtpNames{"embed_norm.weight", "hidden_norm.weight", "input_proj.weight", "transformer_block.", "chain_norm.weight"}
	portMTP      = mtpNames{"enorm.weight", "hnorm.weight", "eh_proj.weight", "mtp_block.", "shared_post_norm.weight"}
)

// mtpFile describes the file of the layers for multi-token prediction; nil if the
// checkpoint has none. Each depth is a dense layer with an input projection of its
// own. Embedding, norm and head are those of the text file.
func (p *planner) mtpFile() *convert.File {
	at := slices.IndexFunc(mtpPrefixes, func(prefix string) bool { return p.Src.HasPrefix(prefix + "layers.") })
	if p.Src.Drawn() && p.c.mtp.depths > 0 {
		at = 0
	}
	if at < 0 {
		return nil
	}
	if !p.c.mtp.known {
		p.skipMTP()
		return nil
	}
	m, prefix, n := &p.c.mtp, mtpPrefixes[at], publishedMTP
	layers := names{published: true, text: prefix}
	if p.Src.Has(prefix + "layers.0." + portMTP.projection) {
		n, layers.published = portMTP, false
	}
	depths := int64(0)
	for p.Src.Has(fmt.Sprintf("%slayers.%d.%s", prefix, depths, n.projection)) {
		depths++
	}
	if p.Src.Drawn() {
		depths = m.depths
	}
	if m.depths != 0 && m.depths != depths || depths == 0 || depths > maxLayers {
		p.Failf("mtp_config.num_nextn_predict_layers is %d, the checkpoint has %d such layers", m.depths, depths)
		return nil
	}
	if m.depths = depths; !p.mtpLocal() {
		return nil
	}
	h := p.c.text.hiddenSize
	f := &convert.File{Kind: convert.MTP, Arch: "inkling"}
	for d := range depths {
		gguf, depth := fmt.Sprintf("blk.%d.", d), fmt.Sprintf("layers.%d.", d)
		f.Tensors = append(f.Tensors,
			p.vector(gguf+"nextn.enorm.weight", prefix+depth+n.embedNorm, h),
			p.vector(gguf+"nextn.hnorm.weight", prefix+depth+n.hiddenNorm, h),
			p.Match.Find(gguf+"nextn.eh_proj.weight", []int64{2 * h, h},
				convert.Spelling{Name: prefix + depth + n.projection, Shape: []int64{h, 2 * h}}))
		f.Tensors = append(f.Tensors, p.attention(layers, gguf, depth+n.layer, p.c.mtpLocal[d])...)
		f.Tensors = append(f.Tensors, p.denseTensors(layers, gguf, depth+n.layer)...)
	}
	if m.chainNorm {
		f.Tensors = append(f.Tensors, p.vector("nextn_chain_norm.weight", prefix+n.chainNorm, h))
	}
	f.KV = p.mtpKeys()
	return f
}

// skipMTP leaves the layers out: no rule says which attend to the sliding window only.
func (p *planner) skipMTP() {
	n := 0
	for _, name := range p.Src.Weights.Names() {
		if isMTP(name) {
			p.Match.Skip(name)
			n++
		}
	}
	p.Notef("the layers for multi-token prediction (%d tensors) are left out: config.json has no mtp_config.local_layer_ids", n)
}

// mtpLocal settles which depths attend to the sliding window only.
func (p *planner) mtpLocal() bool {
	m := &p.c.mtp
	local := make([]bool, m.depths)
	for _, id := range m.localIDs {
		if id >= m.depths {
			p.Failf("mtp_config.local_layer_ids has layer %d of %d", id, m.depths)
			return false
		}
		local[id] = true
	}
	p.c.mtpLocal = local
	return true
}

// mtpKeys returns the keys of the file: those of a text model that has the depths for
// layers, all of them dense, and how many are to predict.
func (p *planner) mtpKeys() []convert.KV {
	t := p.c.text
	t.numHiddenLayers, t.denseLayers, t.local = p.c.mtp.depths, p.c.mtp.depths, p.c.mtpLocal
	return append(textKeys(&t),
		convert.KV{Key: "inkling.nextn_predict_layers", Value: uint32(p.c.mtp.depths)},
		convert.KV{Key: "inkling.nextn_chain_norm", Value: p.c.mtp.chainNorm})
}
