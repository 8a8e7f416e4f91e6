#include "attention.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

#include "attentionprefill.cuh"

using namespace inkling;

// FusedBandPrefill (102), many rows of one sequence.
//
//   q:    [head_dim, n_head, n]           F32, head_dim 64 or 128
//   r:    [d_rel, n_head, n]              F32, d_rel 8 or 16
//   proj: [d_rel, >= extent]              F16, by distance
//   K, V: [head_dim, cells, n_head_kv]    F16, BF16 or Q8_0
//   k, v: [head_dim, n, n_head_kv]        of the cells' type, or absent
//   res:  [head_dim*n_head, n]            F32
//   args: scale, positions that a ring of cells holds (0: position p is in cell p),
//         window (0: none), extent, position of the first row
//
// The cells of all positions that a row sees are filled, but for those of the rows
// themselves if k and v hold them.

// A warp has one tile of 16 rows; its registers leave room for two blocks of 4 warps.
constexpr int prefill_tiles = 1, prefill_warps = 4, prefill_keys = 64, prefill_stages = 2, prefill_step = 64, prefill_blocks = 2;
constexpr int prefill_rows = 16*prefill_tiles*prefill_warps; // of a block
constexpr int prefill_splits = 4; // blocks that share keys, at most

static bool prefill_supports(int device, const ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const int64_t ring = p.args[1], window = p.args[2], extent = p.args[3], first = p.args[4];
    if (!inkling_band_fits(device, node, GGML_TYPE_F16, extent)) {
        return false;
    }
    const ggml_tensor * q = node->src[0], * r = node->src[1], * k = node->src[3], * k_new = node->src[5], * v_new = node->src[6];
    const int64_t head_dim = q->ne[0], n = q->ne[2];
    for (const ggml_tensor * t : {k_new, v_new}) {
        if (t != nullptr && !(inkling_cells_fit(t, head_dim) && t->type == k->type && t->ne[1] == n && t->ne[2] == k->ne[2] && t->ne[3] == 1)) {
            return false;
        }
    }
    const int64_t last = k_new ? first - 1 : first + n - 1; // position in a cell
    return q->ne[3] == 1 && (r->ne[0] == 8 || r->ne[0] == 16) && k->type != GGML_TYPE_F32 && !k_new == !v_new && ring >= 0 && window >= 0 &&
        first >= 0 && first + n < INT_MAX/2 && k->ne[2] < 65536 &&
        (ring == 0 ? last < k->ne[1] : ring <= k->ne[1] && window > 0 && window - 1 + (k_new ? 0 : n) <= ring);
}

template <cell_type type, int head_dim>
static void prefill_launch(const band_prefill_args & a, int splits, cudaStream_t stream) {
    constexpr auto bytes = band_prefill_shared<type, head_dim, prefill_tiles, prefill_warps, prefill_keys, prefill_stages>;
    const auto kernel = band_prefill<type, head_dim, prefill_tiles, prefill_warps, prefill_keys, prefill_stages, prefill_step, prefill_blocks>;
    CUDA_SET_SHARED_MEMORY_LIMIT(kernel, bytes(1));
    const int G = a.n_head/a.n_head_kv;
    kernel<<<dim3((a.n*G + prefill_rows - 1)/prefill_rows, a.n_head_kv, splits), 32*prefill_warps, bytes(G), stream>>>(a);
    CUDA_CHECK(cudaGetLastError());
    if (splits > 1) {
        const int all = a.n*a.n_head, at_once = 128/(head_dim/4);
        band_merge<head_dim><<<(all + at_once - 1)/at_once, 128, 0, stream>>>(a.parts, a.sums, a.out, all, splits);
        CUDA_CHECK(cudaGetLastError());
    }
}

template <cell_type type>
static void prefill_launch(const band_prefill_args & a, int head_dim, int splits, cudaStream_t stream) {
    if (head_dim == 64) {
        prefill_launch<type, 64>(a, splits, stream);
    } else {
        prefill_launch<type, 128>(a, splits, stream);
    }
}

static void prefill_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * q = node->src[0], * r = node->src[1], * k = node->src[3], * v = node->src[4], * k_new = node->src[5], * v_new = node->src[6];
    const int head_dim = q->ne[0];

    band_prefill_args a = {};
    a.q    = (const float *) q->data;
    a.r    = (const float *) r->data;
    a.proj = (const half *) node->src[2]->data;
    a.k    = (const char *) k->data;
    a.v    = (const char *) v->data;
    a.out  = (float *) node->data;
    a.q1 = q->nb[1]/4, a.q2 = q->nb[2]/4;
    a.r1 = r->nb[1]/4, a.r2 = r->nb[2]/4;
    a.k1 = k->nb[1], a.k2 = k->nb[2];
    a.v1 = v->nb[1], a.v2 = v->nb[2];
    a.n         = q->ne[2];
    a.n_head    = q->ne[1];
    a.n_head_kv = k->ne[2];
    a.d_rel     = r->ne[0];
    a.scale     = inkling_float(p.args[0]);
    a.ring      = p.args[1];
    a.window    = p.args[2] > 0 ? p.args[2] : no_window;
    a.extent    = p.args[3];
    a.first     = p.args[4];
    a.fresh     = INT_MAX;
    if (k_new != nullptr) {
        a.fresh  = a.first;
        a.k_new  = (const char *) k_new->data;
        a.v_new  = (const char *) v_new->data;
        a.k1_new = k_new->nb[1], a.k2_new = k_new->nb[2];
        a.v1_new = v_new->nb[1], a.v2_new = v_new->nb[2];
    }

    // Keys are shared out where the rows leave multiprocessors without a block.
    const int G = a.n_head/a.n_head_kv;
    const int64_t blocks = int64_t((a.n*G + prefill_rows - 1)/prefill_rows)*a.n_head_kv;
    const int64_t keys = std::min<int64_t>(a.first + a.n, int64_t(a.window) + prefill_rows/G);
    const int64_t most = std::min<int64_t>(prefill_splits, keys/(4*prefill_keys));
    const int splits = std::max<int64_t>(1, std::min<int64_t>(prefill_blocks*ggml_cuda_info().devices[ctx.device].nsm/blocks, most));

    ggml_cuda_pool_alloc<float>  parts(ctx.pool());
    ggml_cuda_pool_alloc<float2> sums(ctx.pool());
    if (splits > 1) {
        a.parts = parts.alloc(ggml_nelements(node)*splits);
        a.sums  = sums.alloc(int64_t(a.n)*a.n_head*splits);
    }
    switch (k->type) {
        case GGML_TYPE_F16:  prefill_launch<cell_type::f16> (a, head_dim, splits, ctx.stream()); break;
        case GGML_TYPE_BF16: prefill_launch<cell_type::bf16>(a, head_dim, splits, ctx.stream()); break;
        default:             prefill_launch<cell_type::q8_0>(a, head_dim, splits, ctx.stream()); break;
    }
}

const inkling_fused_op inkling_band_prefill = {102, prefill_supports, prefill_compute};

#endif
