// Attention with a bias by distance that each query head has of its own (binding/op,
// Attention): score(i, p) = q_i·k_p·scale + r_i·proj[d], d = position of i - p, without
// the bias where d >= extent; seen are the keys with 0 <= d < window. Query head h reads
// kv head h/G, G = n_head/n_head_kv.
#pragma once

#include "fused.cuh"

extern const inkling_fused_op inkling_band_attention; // attention.cu
extern const inkling_fused_op inkling_band_prefill;   // attentionprefill.cu

// What supports asks of operands.

// Cells of which 8 values can be read at a time.
static inline bool inkling_cells_fit(const ggml_tensor * t, int64_t head_dim) {
    const size_t align = t->type == GGML_TYPE_Q8_0 ? 2 : 16;
    switch (t->type) {
        case GGML_TYPE_F16: case GGML_TYPE_BF16: case GGML_TYPE_Q8_0: case GGML_TYPE_F32: break;
        default: return false;
    }
    return t->ne[0] == head_dim && t->nb[0] == ggml_type_size(t->type) && t->view_offs % align == 0 &&
        t->nb[1] % align == 0 && t->nb[2] % align == 0 && t->nb[3] % align == 0;
}

// Rows of heads of which two elements can be read at a time.
static inline bool inkling_heads_fit(const ggml_tensor * t) {
    return t->type == GGML_TYPE_F32 && t->nb[0] == 4 && t->view_offs % 8 == 0 && t->nb[1] % 8 == 0 && t->nb[2] % 8 == 0 && t->nb[3] % 8 == 0;
}

// q, r, proj, K, V and the result of either operation.
static inline bool inkling_band_fits(int device, const ggml_tensor * node, ggml_type proj_type, int64_t extent) {
    const ggml_tensor * q = node->src[0], * r = node->src[1], * proj = node->src[2], * k = node->src[3], * v = node->src[4];
    const int cc = ggml_cuda_info().devices[device].cc;
    if (!GGML_CUDA_CC_IS_NVIDIA(cc) || ggml_cuda_highest_compiled_arch(cc) < GGML_CUDA_CC_AMPERE || !q || !r || !proj || !k || !v) {
        return false;
    }
    const int64_t dh = q->ne[0], n_head = q->ne[1], n = q->ne[2], seqs = q->ne[3], n_head_kv = k->ne[2];
    return (dh == 64 || dh == 128) && inkling_heads_fit(q) && inkling_heads_fit(r) && r->ne[1] == n_head && r->ne[2] == n && r->ne[3] == seqs &&
        r->ne[0] % 4 == 0 && r->ne[0] <= 16 && proj->type == proj_type && ggml_is_contiguous(proj) && proj->ne[0] == r->ne[0] &&
        extent >= 0 && proj->ne[1] >= extent && inkling_cells_fit(k, dh) && inkling_cells_fit(v, dh) && v->type == k->type &&
        v->ne[1] == k->ne[1] && v->ne[2] == n_head_kv && k->ne[3] == seqs && v->ne[3] == seqs && n_head % n_head_kv == 0 &&
        node->type == GGML_TYPE_F32 && ggml_is_contiguous(node) && ggml_nelements(node) == dh*n_head*n*seqs &&
        k->ne[1] < INT_MAX/4 && n*n_head < INT_MAX/4;
}
