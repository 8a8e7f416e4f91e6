#include "attention.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

#include "attentiondecode.cuh"

using namespace inkling;

// FusedBandAttention (101), few rows a sequence.
//
//   q:       [head_dim, n_head, n, n_seq]          F32, head_dim 64 or 128
//   r:       [d_rel, n_head, n, n_seq]             F32, d_rel a multiple of 4 and up to 16
//   proj:    [d_rel, >= extent]                    F32, by distance
//   K, V:    [head_dim, cells, n_head_kv, n_seq]   F16, BF16, Q8_0 or F32
//   first:   [n_seq]                               I32, position of the first row; -1: idle, its result is 0
//   tickets: [>= 2*n_head*n_seq]                   I32, 0 before and after
//   res:     [head_dim*n_head, n*n_seq]            F32
//   args:    scale, positions that a ring of cells holds (0: position p is in cell p),
//            window (0: none), extent
//
// The cells of all positions that a row sees, its own among them, are filled.

constexpr int decode_stages = 2;

// How rows and keys are cut: rows of a block in tiles of 8, its warps, and how many blocks
// share the keys of a sequence's kv head.
struct decode_shape {
    int  tiles, warps, splits;
    bool cluster;
    int  blocks; // that do not share keys
};

// Bounds measured on an H200. The fewer rows a block has, the more often are keys read,
// from L2; the more blocks there are and the sooner each is done. A cluster adds up
// faster than blocks do that meet in memory, but waits until there is room for all of it.
//
//   rows: of a kv head;  heads: kv heads of all sequences
static decode_shape decode_shape_of(int64_t rows, int64_t heads, int64_t keys, ggml_type type, int device) {
    const int64_t nsm = ggml_cuda_info().devices[device].nsm;
    const int most = type == GGML_TYPE_F32 ? 4 : 8; // warps: its tiles are twice as large
    decode_shape s = {1, 4, 1, false, 0};
    if (keys > 1024) {
        s.tiles = rows <= 16 ? 1 : keys <= 8192 ? 2 : 4;
        s.warps = s.tiles == 2 ? 4 : most;
    }
    s.blocks = (rows + 8*s.tiles - 1)/(8*s.tiles)*heads;
    if (keys <= 1024 && inkling_is_hopper(device)) {
        s.cluster = s.blocks <= nsm;
        s.warps   = 2*s.blocks <= nsm ? most : 4;
        s.splits  = 8*s.blocks <= nsm ? 4 : s.cluster ? 2 : 1;
        return s;
    }
    const int64_t wanted = (s.warps == 4 ? 2 : 1)*nsm/s.blocks, useful = (keys + 16*s.warps - 1)/(16*s.warps);
    s.splits = std::max<int64_t>(1, std::min(wanted, useful));
    return s;
}

static bool attention_supports(int device, const ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const int64_t ring = p.args[1], window = p.args[2], extent = p.args[3];
    if (!inkling_band_fits(device, node, GGML_TYPE_F32, extent)) {
        return false;
    }
    const ggml_tensor * q = node->src[0], * k = node->src[3], * first = node->src[5], * tickets = node->src[6];
    const int64_t n_head = q->ne[1], n = q->ne[2], seqs = q->ne[3];
    return first && tickets && n <= 16 && seqs < 65536 && n_head*n < 65536 && first->type == GGML_TYPE_I32 && ggml_is_contiguous(first) && ggml_nelements(first) == seqs &&
        tickets->type == GGML_TYPE_I32 && ggml_is_contiguous(tickets) && ggml_nelements(tickets) >= 2*n_head*seqs &&
        ring >= 0 && window >= 0 && (ring == 0 || (ring >= 16 && ring <= k->ne[1] && window > 0 && window + n - 1 <= ring));
}

template <cell_type type, int head_dim, int tiles, int warps>
static void decode_launch(const band_decode_args & a, int seqs, cudaStream_t stream) {
    constexpr int shared = band_decode_shared<type, head_dim, tiles, warps, decode_stages>();
    const auto kernel = band_decode<type, head_dim, tiles, warps, decode_stages>;
    CUDA_SET_SHARED_MEMORY_LIMIT(kernel, shared);
    const int groups = (a.n*(a.n_head/a.n_head_kv) + 8*tiles - 1)/(8*tiles);
    const bool hopper = inkling_is_hopper(ggml_cuda_get_device());
    CUDA_CHECK(inkling_start(hopper, a.cluster ? a.splits : 1, kernel, dim3(a.splits, groups*a.n_head_kv, seqs), 32*warps, shared, stream, a));
}

template <cell_type type, int head_dim>
static void decode_launch(const band_decode_args & a, decode_shape shape, int seqs, cudaStream_t stream) {
    constexpr int more = type == cell_type::f32 ? 4 : 8;
    if (shape.tiles == 4) {
        decode_launch<type, head_dim, 4, more>(a, seqs, stream);
    } else if (shape.tiles == 2) {
        decode_launch<type, head_dim, 2, 4>(a, seqs, stream);
    } else if (shape.warps == more) {
        decode_launch<type, head_dim, 1, more>(a, seqs, stream);
    } else {
        decode_launch<type, head_dim, 1, 4>(a, seqs, stream);
    }
}

template <cell_type type>
static void decode_launch(const band_decode_args & a, int head_dim, decode_shape shape, int seqs, cudaStream_t stream) {
    if (head_dim == 64) {
        decode_launch<type, 64>(a, shape, seqs, stream);
    } else {
        decode_launch<type, 128>(a, shape, seqs, stream);
    }
}

static void attention_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * q = node->src[0], * r = node->src[1], * proj = node->src[2], * k = node->src[3], * v = node->src[4];
    const int head_dim = q->ne[0], n_head = q->ne[1], n = q->ne[2], seqs = q->ne[3], n_head_kv = k->ne[2];

    band_decode_args a = {};
    a.q       = (const float *) q->data;
    a.r       = (const float *) r->data;
    a.proj    = (const float *) proj->data;
    a.k       = (const char *) k->data;
    a.v       = (const char *) v->data;
    a.first   = (const int32_t *) node->src[5]->data;
    a.tickets = (unsigned *) node->src[6]->data;
    a.out     = (float *) node->data;
    a.q1 = q->nb[1]/4, a.q2 = q->nb[2]/4, a.q3 = q->nb[3]/4;
    a.r1 = r->nb[1]/4, a.r2 = r->nb[2]/4, a.r3 = r->nb[3]/4;
    a.k1 = k->nb[1], a.k2 = k->nb[2], a.k3 = k->nb[3];
    a.v1 = v->nb[1], a.v2 = v->nb[2], a.v3 = v->nb[3];
    a.n         = n;
    a.n_head    = n_head;
    a.n_head_kv = n_head_kv;
    a.d_rel     = r->ne[0];
    a.scale     = inkling_float(p.args[0]);
    a.ring      = p.args[1];
    a.window    = p.args[2] > 0 ? p.args[2] : no_window;
    a.extent    = p.args[3];
    a.cells     = k->ne[1];

    const int64_t keys = a.window == no_window ? a.cells : std::min(a.cells, a.window + n - 1);
    const decode_shape shape = decode_shape_of(int64_t(n)*(n_head/n_head_kv), int64_t(n_head_kv)*seqs, keys, k->type, ctx.device);
    a.splits  = shape.splits;
    a.cluster = shape.cluster;

    ggml_cuda_pool_alloc<float>  parts(ctx.pool());
    ggml_cuda_pool_alloc<float2> sums(ctx.pool());
    if (a.splits > 1 && !a.cluster) {
        const int64_t rows = int64_t(shape.blocks)*a.splits*8*shape.tiles;
        a.parts = parts.alloc(rows*head_dim);
        a.sums  = sums.alloc(rows);
    }
    switch (k->type) {
        case GGML_TYPE_F16:  decode_launch<cell_type::f16> (a, head_dim, shape, seqs, ctx.stream()); break;
        case GGML_TYPE_BF16: decode_launch<cell_type::bf16>(a, head_dim, shape, seqs, ctx.stream()); break;
        case GGML_TYPE_Q8_0: decode_launch<cell_type::q8_0>(a, head_dim, shape, seqs, ctx.stream()); break;
        default:             decode_launch<cell_type::f32> (a, head_dim, shape, seqs, ctx.stream()); break;
    }
}

const inkling_fused_op inkling_band_attention = {101, attention_supports, attention_compute};

#endif
