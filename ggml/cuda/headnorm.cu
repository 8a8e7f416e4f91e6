#include "decode.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

// FusedHeadNorm (207): RMSNorm(x)·w of rows that are too short for a block each.
//
//   x:   [k, n1, n2, n3]   F32, rows anywhere; k a multiple of 4, at most 256
//   w:   [k]               F32
//   res: [k, n1, n2, n3]
//   args: eps
struct head_norm_args {
    const char * x;
    const float4 * w;
    float4 * dst;
    int64_t nb1, nb2, nb3;
    int quads, n1, n2, rows;
    float eps;
};

constexpr int norm_warps = 8, norm_quads = 2; // of a block, of a lane

// A warp for each row.
static __global__ void __launch_bounds__(norm_warps*WARP_SIZE) head_norm(const __grid_constant__ head_norm_args a) {
    const int row = blockIdx.x*norm_warps + threadIdx.x/WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    if (row >= a.rows) {
        return;
    }
    const float4 * const x = (const float4 *) (a.x + row % a.n1*a.nb1 + row/a.n1 % a.n2*a.nb2 + row/a.n1/a.n2*a.nb3);
    float4 v[norm_quads];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < norm_quads; i++) {
        const int q = i*WARP_SIZE + lane;
        v[i] = q < a.quads ? x[q] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        sum += inkling_squares(v[i]);
    }
    const float scale = rsqrtf(warp_reduce_sum(sum)/(4*a.quads) + a.eps);
#pragma unroll
    for (int i = 0; i < norm_quads; i++) {
        const int q = i*WARP_SIZE + lane;
        if (q < a.quads) {
            a.dst[int64_t(row)*a.quads + q] = inkling_scaled(v[i], scale, a.w[q]);
        }
    }
}

static bool norm_supports(int, const ggml_tensor * node) {
    const ggml_tensor * x = node->src[0], * w = node->src[1];
    return w != nullptr && x->type == GGML_TYPE_F32 && x->ne[0] % 4 == 0 && x->ne[0] <= 4*norm_quads*WARP_SIZE && inkling_is(w, GGML_TYPE_F32, x->ne[0], 1) &&
        x->nb[0] == sizeof(float) && x->nb[1] % 16 == 0 && x->nb[2] % 16 == 0 && x->nb[3] % 16 == 0 && x->view_offs % 16 == 0 && ggml_nrows(x) <= INT_MAX/2 &&
        node->type == GGML_TYPE_F32 && ggml_is_contiguous(node) && ggml_are_same_shape(x, node);
}

static void norm_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const ggml_tensor * x = node->src[0];
    head_norm_args a;
    a.x     = (const char *) x->data;
    a.w     = (const float4 *) node->src[1]->data;
    a.dst   = (float4 *) node->data;
    a.nb1   = x->nb[1];
    a.nb2   = x->nb[2];
    a.nb3   = x->nb[3];
    a.quads = int(x->ne[0]/4);
    a.n1    = int(x->ne[1]);
    a.n2    = int(x->ne[2]);
    a.rows  = int(ggml_nrows(x));
    a.eps   = inkling_float(inkling_params(node).args[0]);
    head_norm<<<(a.rows + norm_warps - 1)/norm_warps, norm_warps*WARP_SIZE, 0, ctx.stream()>>>(a);
    CUDA_CHECK(cudaGetLastError());
}

extern const inkling_fused_op inkling_head_norm = { 207, norm_supports, norm_compute };
#endif
