package inkling

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inkling-go/inkling/binding"
	"github.com/inkling-go/inkling/internal/gguf"
	"github.com/inkling-go/inkling/models"
)

// writeShape writes a text file of zero weights that has Inkling-Small's
// widths and two layers: one sliding and dense, one full with experts. Change
// alters or removes keys.
func writeShape(t testing.TB, change func(kv map[string]any)) string {
	t.Helper()
	const (
		embd, ff, ffExp, nHead, hkv, dh = 4096, 16384, 2048, 32, 8, 128
		vocab, dRel, X, W, K            = 1024, 16, 1024, 512, 4
		experts, used, shared           = 6, 6, 2
	)
	kv := map[string]any{
		"block_count": uint32(2), "context_length": uint32(1 << 20), "embedding_length": uint32(embd), "vocab_size": uint32(vocab),
		"feed_forward_length": uint32(ff), "expert_feed_forward_length": uint32(ffExp), "expert_count": uint32(experts),
		"expert_used_count": uint32(used), "expert_shared_count": uint32(shared), "expert_gating_func": uint32(2), "expert_weights_scale": float32(8),
		"attention.head_count": uint32(nHead), "attention.head_count_kv": []int32{hkv, hkv}, "attention.key_length": uint32(dh),
		"attention.value_length": uint32(dh), "attention.layer_norm_rms_epsilon": float32(1e-6), "attention.sliding_window": uint32(W),
		"attention.sliding_window_pattern": []bool{true, false}, "d_rel": uint32(dRel), "rel_extent": uint32(X), "rel_extent_swa": uint32(W),
		"shortconv_kernel": uint32(K), "dense_block_count": uint32(1), "logit_scale_denom": float32(16),
		"log_scaling_n_floor": uint32(128000), "log_scaling_alpha": float32(0.1), "unpadded_vocab_size": uint32(1000),
	}
	if change != nil {
		change(kv)
	}
	path := filepath.Join(t.TempDir(), "shape.gguf")
	w, err := gguf.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.Set("general.architecture", "inkling"))
	for k, v := range kv {
		must(w.Set("inkling."+k, v))
	}
	var names []string
	var sizes []int64
	add := func(typ gguf.Type, name string, ne ...int64) {
		must(w.AddTensor(name, typ, ne))
		rows := int64(1)
		for _, n := range ne[1:] {
			rows *= n
		}
		row, err := typ.RowBytes(ne[0])
		must(err)
		names, sizes = append(names, name), append(sizes, row*rows)
	}
	quant := func(name string, ne ...int64) { add(gguf.Q4_0, name+".weight", ne...) }
	plain := func(name string, ne ...int64) { add(gguf.F32, name, ne...) }
	quant("token_embd", embd, vocab)
	quant("output", embd, vocab)
	plain("token_embd_norm.weight", embd)
	plain("output_norm.weight", embd)
	for i, extent := range []int64{W, X} {
		b := fmt.Sprintf("blk.%d.", i)
		quant(b+"attn_q", embd, nHead*dh)
		quant(b+"attn_k", embd, hkv*dh)
		quant(b+"attn_v", embd, hkv*dh)
		quant(b+"attn_r", embd, nHead*dRel)
		quant(b+"attn_output", nHead*dh, embd)
		for _, name := range []string{"attn_norm", "ffn_norm"} {
			plain(b+name+".weight", embd)
		}
		for _, name := range []string{"attn_q_norm", "attn_k_norm"} {
			plain(b+name+".weight", dh)
		}
		plain(b+"attn_rel_proj.weight", extent, dRel)
		plain(b+"shortconv_k.weight", K, hkv*dh)
		plain(b+"shortconv_v.weight", K, hkv*dh)
		plain(b+"shortconv_attn.weight", K, embd)
		plain(b+"shortconv_mlp.weight", K, embd)
		plain(b+"ffn_gscale.weight", 1)
	}
	quant("blk.0.ffn_gate", embd, ff)
	quant("blk.0.ffn_up", embd, ff)
	quant("blk.0.ffn_down", ff, embd)
	plain("blk.1.ffn_gate_inp.weight", embd, experts+shared)
	plain("blk.1.exp_probs_b.bias", experts)
	for n, kind := range map[int64]string{experts: "exps", shared: "shexp"} {
		quant("blk.1.ffn_gate_"+kind, embd, ffExp, n)
		quant("blk.1.ffn_up_"+kind, embd, ffExp, n)
		quant("blk.1.ffn_down_"+kind, ffExp, embd, n)
	}
	zeros := make([]byte, 1<<20)
	for i, name := range names {
		must(w.WriteTensor(name, func(w io.Writer) error {
			for left := sizes[i]; left > 0; left -= int64(len(zeros)) {
				if _, err := w.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	must(w.Commit())
	return path
}

// TestComputeMemory: with Inkling-Small's widths, 512 rows at the end of
// 262,144 need at most 2 GiB for intermediate results, a constant and 2 KiB for
// each position. Nothing of it is allocated.
func TestComputeMemory(t *testing.T) {
	m, err := models.Open(openGGUF(t, writeShape(t, nil)), models.Params{Backend: newBackend(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, kv := range []binding.DType{binding.F16, binding.Q8_0} {
		for _, size := range []int{8192, 65536, 131072, 262144} {
			c, err := m.NewCache(1, size, kv)
			if err != nil {
				t.Fatal(err)
			}
			for rows, most := range map[int]int64{1: 128 << 20, 512: 1<<30 + 2<<10*int64(size)} {
				n, err := m.ComputeBytes(c, rows)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s cache, %d rows at the end of %d: %d MiB", kv, rows, size, n>>20)
				if n > min(most, 2<<30) {
					t.Errorf("%s cache, %d rows at the end of %d: %d MiB for intermediate results, want at most %d MiB", kv, rows, size, n>>20, min(most, 2<<30)>>20)
				}
			}
			c.Close()
		}
	}
}

// TestWeightTypes: integers are no weights, whatever the file says.
func TestWeightTypes(t *testing.T) {
	path := writeShape(t, nil)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The record of a tensor: its name, the number of dimensions, these, the type.
	name := []byte("blk.0.attn_q.weight")
	at := bytes.Index(data, name) + len(name) + 4 + 2*8
	if binary.LittleEndian.Uint32(data[at:]) != uint32(gguf.Q4_0) {
		t.Fatal("no type where it was expected")
	}
	binary.LittleEndian.PutUint32(data[at:], uint32(gguf.Q4_1)) // of another size
	bad := filepath.Join(t.TempDir(), "bad.gguf")
	if err := os.WriteFile(bad, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := gguf.Open(bad); err == nil {
		f.Close()
		t.Error("a type of another size: no error")
	}
	w, err := gguf.Create(bad)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	var infos []gguf.TensorInfo
	src := openGGUF(t, path)
	for _, key := range src.Keys() {
		if v, ok := src.Value(key); ok {
			if err := w.Set(key, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, info := range src.Tensors() {
		if info.Name == string(name) {
			info.Type = gguf.I32
		}
		if err := w.AddTensor(info.Name, info.Type, info.Dims); err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	for _, info := range infos {
		row, err := info.Type.RowBytes(info.Dims[0])
		if err != nil {
			t.Fatal(err)
		}
		zeros := make([]byte, row*(info.Elems()/info.Dims[0]))
		if err := w.WriteTensor(info.Name, func(w io.Writer) error { _, err := w.Write(zeros); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	_, err = models.Open(openGGUF(t, bad), models.Params{Backend: newBackend(t)})
	if err == nil || !strings.Contains(err.Error(), "blk.0.attn_q.weight") || !strings.Contains(err.Error(), "i32") {
		t.Errorf("error %v, want one that names the tensor and its type", err)
	}
}

// TestBadGeometry: what can not be computed is refused at load by the key's name.
func TestBadGeometry(t *testing.T) {
	for key, v := range map[string]any{
		"attention.sliding_window":         uint32(0),
		"rel_extent":                       uint32(0),
		"rel_extent_swa":                   uint32(0),
		"d_rel":                            uint32(0),
		"shortconv_kernel":                 uint32(1),
		"attention.head_count":             uint32(33),
		"attention.head_count_kv":          []int32{8},
		"attention.sliding_window_pattern": []bool{true},
		"attention.value_length":           uint32(64),
		"attention.key_length":             uint32(0),
		"block_count":                      uint32(1 << 30),
		"context_length":                   uint32(0),
		"expert_used_count":                uint32(7),
		"expert_gating_func":               uint32(1),
		"dense_block_count":                uint32(3),
		"unpadded_vocab_size":              uint32(2000),
		"logit_scale_denom":                float32(0),
		"attention.layer_norm_rms_epsilon": float32(-1),
		"expert_weights_scale":             "eight",
		"embedding_length":                 nil,
	} {
		t.Run(key, func(t *testing.T) {
			path := writeShape(t, func(kv map[string]any) {
				if v == nil {
					delete(kv, key)
				} else {
					kv[key] = v
				}
			})
			_, err := models.Open(openGGUF(t, path), models.Params{Backend: newBackend(t)})
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), key) {
				t.Errorf("error %v, want one that names %s and %s", err, path, key)
			}
		})
	}
}
