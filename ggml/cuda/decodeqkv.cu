#include "decode.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

// FusedQKV (202): what stands between the products of a layer's attention and the
// attention itself. Queries are normed per head and scaled by tau, as is r; keys and
// values go through the short convolution, keys through their norm, and both into
// the cache.
//
//   qkvr:   [(n_head+2*n_head_kv)*head_dim + n_head*d_rel, n*n_seq]   F32
//   q_norm: [head_dim]                                                F32
//   k_norm: [head_dim]                                                F32
//   w:      [4, 2*n_head_kv*head_dim]                                 F32, keys before values
//   table:  [2*n_head_kv*head_dim, rows]                              F32; read, then written
//   K, V:   [head_dim, cells, n_head_kv, n_seq]   F32, F16, BF16 or Q8_0; cells of the rows' positions written
//   first:  [n_seq]                                                   I32
//   tau:    [1, n*n_seq]                                              F32, or absent
//   res:    [(head_dim+d_rel)*n_head*n*n_seq]     F32: q [head_dim, n_head, n*n_seq], then r [d_rel, n_head, n*n_seq]
//   args:   n, ring size of the convolution, rows of a ring, first ring, eps, n_head,
//           positions that a ring of cells holds (0: position p is in cell p)
struct qkv_cells {
    char *    data;
    ggml_type type;
    int32_t   cells;
    int64_t   nb1, nb2, nb3;
};

struct qkv_args {
    const float4 * qkvr;
    const float4 * q_norm;
    const float4 * k_norm;
    const float4 * w;
    const float *  tau;
    float4 *       table;
    float4 *       q;
    float4 *       r;
    qkv_cells      k, v;
    inkling_rows   rows;
    inkling_ring   ring;
    int32_t        cell_ring;
    int32_t        n_head, n_head_kv;
    int32_t        head_quads; // head_dim/4
    int32_t        r_quads;    // n_head*d_rel/4
    int32_t        row_quads;  // of qkvr
    float          eps;
};

constexpr int qkv_warps = 4;  // of a block; each takes one head
constexpr int qkv_quads = 2;  // of a lane at most, so heads of up to 256

// 4 elements from element 4*q on of a row of cells. Of Q8_0 the 8 lanes that have a
// block of 32 elements find its scale together; all lanes must call it.
static __device__ __forceinline__ void put_quad(char * row, const ggml_type type, const int q, const float4 v, const bool valid) {
    if (type == GGML_TYPE_Q8_0) {
        float most = valid ? fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))) : 0.0f;
#pragma unroll
        for (int offset = 4; offset > 0; offset >>= 1) {
            most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, offset));
        }
        const float d = most/127.0f, scale = d != 0.0f ? 1.0f/d : 0.0f;
        if (valid) {
            block_q8_0 & b = ((block_q8_0 *) row)[q/8];
            if (q % 8 == 0) {
                b.d = __float2half(d);
            }
            char2 * to = (char2 *) (b.qs + 4*(q % 8)); // blocks are 34 bytes
            to[0] = make_char2(roundf(v.x*scale), roundf(v.y*scale));
            to[1] = make_char2(roundf(v.z*scale), roundf(v.w*scale));
        }
        return;
    }
    if (!valid) {
        return;
    }
    switch (type) {
        case GGML_TYPE_F32:
            ((float4 *) row)[q] = v;
            break;
        case GGML_TYPE_F16: {
            half2 h[2] = { __floats2half2_rn(v.x, v.y), __floats2half2_rn(v.z, v.w) };
            ((uint2 *) row)[q] = *(const uint2 *) h;
        } break;
        default: {
            nv_bfloat162 h[2] = { __floats2bfloat162_rn(v.x, v.y), __floats2bfloat162_rn(v.z, v.w) };
            ((uint2 *) row)[q] = *(const uint2 *) h;
        } break;
    }
}

// A warp for each head of q, k and v, then for each 128 values of r.
static __global__ void __launch_bounds__(qkv_warps*WARP_SIZE) prepare_qkv(qkv_args a) {
    const int row  = blockIdx.y, lane = threadIdx.x % WARP_SIZE;
    int       head = blockIdx.x*qkv_warps + threadIdx.x/WARP_SIZE;
    const float4 * in = a.qkvr + int64_t(row)*a.row_quads;

    if (head >= a.n_head + 2*a.n_head_kv) {
        inkling_wait();
        inkling_release();
        const int q = (head - a.n_head - 2*a.n_head_kv)*WARP_SIZE + lane;
        if (q < a.r_quads) {
            const float tau = a.tau == nullptr ? 1.0f : a.tau[row];
            a.r[int64_t(row)*a.r_quads + q] = inkling_scaled(in[(a.n_head + 2*a.n_head_kv)*a.head_quads + q], tau, make_float4(1.0f, 1.0f, 1.0f, 1.0f));
        }
        return;
    }

    const bool is_q = head < a.n_head, is_v = head >= a.n_head + a.n_head_kv;
    const float4 * norm = is_q ? a.q_norm : a.k_norm;
    inkling_conv_weights conv[qkv_quads];
    float4 v[qkv_quads], weight[qkv_quads];
    float  squares = 0.0f;
#pragma unroll
    for (int i = 0; i < qkv_quads; i++) {
        const int q = i*WARP_SIZE + lane;
        v[i] = weight[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (q < a.head_quads) {
            weight[i] = norm[q];
            if (!is_q) {
                conv[i] = inkling_load_conv(a.w, (head - a.n_head)*a.head_quads + q);
            }
        }
    }
    inkling_wait();
    inkling_release();
#pragma unroll
    for (int i = 0; i < qkv_quads; i++) {
        const int q = i*WARP_SIZE + lane;
        if (q < a.head_quads) {
            if (is_q) {
                v[i] = in[head*a.head_quads + q];
            } else {
                v[i] = inkling_short_conv(a.qkvr + a.n_head*a.head_quads, a.row_quads, conv[i], a.table, a.ring, a.rows, row,
                    (head - a.n_head)*a.head_quads + q, 2*a.n_head_kv*a.head_quads);
            }
            squares += inkling_squares(v[i]);
        }
    }
    if (!is_v) {
        float scale = rsqrtf(warp_reduce_sum(squares)/(4*a.head_quads) + a.eps);
        if (is_q && a.tau != nullptr) {
            scale *= a.tau[row];
        }
#pragma unroll
        for (int i = 0; i < qkv_quads; i++) {
            v[i] = inkling_scaled(v[i], scale, weight[i]);
        }
    }

    if (is_q) {
#pragma unroll
        for (int i = 0; i < qkv_quads; i++) {
            const int q = i*WARP_SIZE + lane;
            if (q < a.head_quads) {
                a.q[(int64_t(row)*a.n_head + head)*a.head_quads + q] = v[i];
            }
        }
        return;
    }
    const int s = row / a.rows.n, first = a.rows.first[s], p = first + row - s*a.rows.n;
    const qkv_cells & to = is_v ? a.v : a.k;
    const int cell = a.cell_ring > 0 ? p % a.cell_ring : p;
    if (first < 0 || cell >= to.cells) {
        return;
    }
    head -= is_v ? a.n_head + a.n_head_kv : a.n_head;
    char * cells = to.data + cell*to.nb1 + head*to.nb2 + s*to.nb3;
#pragma unroll
    for (int i = 0; i < qkv_quads; i++) {
        const int q = i*WARP_SIZE + lane;
        put_quad(cells, to.type, q, v[i], q < a.head_quads);
    }
}

static bool holds_cells(const ggml_tensor * t, int64_t head_dim, int64_t seqs, int32_t cell_ring) {
    if (t == nullptr || t->ne[0] != head_dim || t->ne[3] != seqs || cell_ring < 0 || cell_ring > t->ne[1] || t->ne[1] > INT_MAX) {
        return false;
    }
    size_t align; // of what is written at once
    switch (t->type) {
        case GGML_TYPE_F32:  align = sizeof(float4); break;
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16: align = sizeof(uint2);  break;
        case GGML_TYPE_Q8_0: align = sizeof(char2);  break;
        default: return false;
    }
    return head_dim % ggml_blck_size(t->type) == 0 && t->nb[0] == ggml_type_size(t->type) &&
        t->view_offs % align == 0 && t->nb[1] % align == 0 && t->nb[2] % align == 0 && t->nb[3] % align == 0;
}

static bool qkv_supports(int device, const ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * qkvr = node->src[0], * q_norm = node->src[1], * k = node->src[5], * v = node->src[6], * tau = node->src[8];
    if (qkvr == nullptr || q_norm == nullptr || k == nullptr || v == nullptr || p.args[0] < 1) {
        return false;
    }
    const int64_t head_dim = q_norm->ne[0], n_head = p.args[5], n_head_kv = k->ne[2], n = p.args[0], rows = qkvr->ne[1];
    const int64_t r = qkvr->ne[0] - (n_head + 2*n_head_kv)*head_dim; // n_head*d_rel
    const inkling_ring ring = { p.args[1], p.args[2], p.args[3] };
    GGML_UNUSED(device);
    return n_head >= 1 && r >= n_head && r % n_head == 0 && r % 4 == 0 && head_dim % 4 == 0 && head_dim <= 4*qkv_quads*WARP_SIZE &&
        rows <= 65535 && inkling_few(ring, n) && (p.args[6] == 0 || n <= p.args[6]) &&
        inkling_is(qkvr, GGML_TYPE_F32, qkvr->ne[0], rows) && inkling_is(q_norm, GGML_TYPE_F32, head_dim, 1) &&
        inkling_is(node->src[2], GGML_TYPE_F32, head_dim, 1) &&
        inkling_conv_fits(node->src[3], node->src[4], ring, node->src[7], n, rows) && node->src[3]->ne[1] == 2*n_head_kv*head_dim &&
        holds_cells(k, head_dim, rows/n, p.args[6]) && holds_cells(v, head_dim, rows/n, p.args[6]) && v->ne[2] == n_head_kv &&
        (tau == nullptr || inkling_is(tau, GGML_TYPE_F32, 1, rows)) &&
        inkling_is(node, GGML_TYPE_F32, (n_head*head_dim + r)*rows, 1);
}

static void qkv_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const int rows = node->src[0]->ne[1];
    const auto in = [&](int i) { return (const float4 *) node->src[i]->data; };
    const auto cells = [](const ggml_tensor * t) {
        return qkv_cells{ (char *) t->data, t->type, int32_t(t->ne[1]), int64_t(t->nb[1]), int64_t(t->nb[2]), int64_t(t->nb[3]) };
    };
    qkv_args a;
    a.qkvr       = in(0);
    a.q_norm     = in(1);
    a.k_norm     = in(2);
    a.w          = in(3);
    a.table      = (float4 *) node->src[4]->data;
    a.k          = cells(node->src[5]);
    a.v          = cells(node->src[6]);
    a.tau        = node->src[8] == nullptr ? nullptr : (const float *) node->src[8]->data;
    a.rows       = { (const int32_t *) node->src[7]->data, p.args[0] };
    a.ring       = { p.args[1], p.args[2], p.args[3] };
    a.eps        = inkling_float(p.args[4]);
    a.n_head     = p.args[5];
    a.cell_ring  = p.args[6];
    a.n_head_kv  = node->src[5]->ne[2];
    a.head_quads = node->src[1]->ne[0]/4;
    a.row_quads  = node->src[0]->ne[0]/4;
    a.r_quads    = a.row_quads - (a.n_head + 2*a.n_head_kv)*a.head_quads;
    a.q          = (float4 *) node->data;
    a.r          = a.q + int64_t(rows)*a.n_head*a.head_quads;

    const int warps = a.n_head + 2*a.n_head_kv + (a.r_quads + WARP_SIZE - 1)/WARP_SIZE;
    inkling_launch(ctx, prepare_qkv, dim3((warps + qkv_warps - 1)/qkv_warps, rows), qkv_warps*WARP_SIZE, 0, 1, a);
}

extern const inkling_fused_op inkling_qkv = { 202, qkv_supports, qkv_compute };
#endif
