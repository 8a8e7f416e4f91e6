package inkling

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inkling-go/inkling/convert"
	"github.com/inkling-go/inkling/convert/internal/checkpointtest"
	"github.com/inkling-go/inkling/convert/internal/converttest"
)

// TestMTP looks at the file of the layers for multi-token prediction, with and without
// a norm between the depths. In the checkpoint depth 0 is local.
func TestMTP(t *testing.T) {
	for _, chain := range []bool{false, true} {
		c := checkpointtest.Load(t, tiny)
		if chain {
			c.Section("mtp_config")["chain_hidden_post_norm"] = true
			c.Add("model.mtp.chain_norm.weight", 256)
		}
		files, _ := converttest.Run(t, c.Write(t), convert.OutBF16)
		f := files[convert.MTP]
		if f == nil {
			t.Fatal("no file")
		}
		got := make(map[string]any)
		for _, key := range []string{
			"general.architecture", "general.type", "inkling.block_count", "inkling.dense_block_count", "inkling.nextn_predict_layers",
			"inkling.nextn_chain_norm", "inkling.attention.sliding_window_pattern", "inkling.attention.head_count_kv",
		} {
			got[key], _ = f.Value(key)
		}
		want := map[string]any{
			"general.architecture": "inkling", "general.type": "model", "inkling.block_count": uint32(2), "inkling.dense_block_count": uint32(2),
			"inkling.nextn_predict_layers": uint32(2), "inkling.nextn_chain_norm": chain,
			"inkling.attention.sliding_window_pattern": []bool{true, false}, "inkling.attention.head_count_kv": []int32{4, 2},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if _, ok := f.Tensor("nextn_chain_norm.weight"); ok != chain {
			t.Errorf("chain norm is there: %v, want %v", ok, chain)
		}
		if eh, _ := f.Tensor("blk.1.nextn.eh_proj.weight"); !cmp.Equal(eh.Dims, []int64{512, 256}) {
			t.Errorf("eh_proj is %v, want {512, 256}", eh.Dims)
		}
		if rel, _ := f.Tensor("blk.0.attn_rel_proj.weight"); !cmp.Equal(rel.Dims, []int64{128, 16}) {
			t.Errorf("attn_rel_proj of a local depth is %v, want {128, 16}", rel.Dims)
		}
	}
}

// TestMTPRefuses has settings that the tensors contradict.
func TestMTPRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, key string
		value     any
		want      string
	}{
		{"depths", "num_nextn_predict_layers", 3, "config.json: mtp_config.num_nextn_predict_layers is 3, the checkpoint has 2 such layers"},
		{"local layer", "local_layer_ids", []int{2}, "config.json: mtp_config.local_layer_ids has layer 2 of 2"},
		{"chain norm", "chain_hidden_post_norm", true, ": missing tensor model.mtp.chain_norm.weight"},
	} {
		c := checkpointtest.Load(t, tiny)
		c.Section("mtp_config")[tc.key] = tc.value
		converttest.WantError(t, converttest.Refused(t, c.Write(t)), tc.want)
	}
}
