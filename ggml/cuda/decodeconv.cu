#include "decode.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

// FusedConvAddNorm (201): a branch joins the stream. sum = x + conv(y), normed =
// RMSNorm(sum)·norm.
//
//   y:     [C, n*n_seq]     F32
//   w:     [4, C]           F32, oldest input first, the inner residual in the last
//   table: [C, rows]        F32; read, and the new inputs written
//   x:     [C, n*n_seq]     F32
//   first: [n_seq]          I32
//   norm:  [C]              F32, or absent
//   res:   [C, 2*n*n_seq]   F32: all of sum, then all of normed; [C, n*n_seq] without norm
//   args:  n, ring size, rows of a ring, first ring, eps
struct conv_add_norm_args {
    const float4 * y;
    const float4 * w;
    const float4 * x;
    const float4 * norm;
    float4 *       table;
    float4 *       sum;
    float4 *       normed;
    inkling_rows   rows;
    inkling_ring   ring;
    int32_t        quads; // C/4
    float          eps;
};

// Barriers of a cluster and a store into another block's shared memory, in PTX:
// cooperative_groups.h needs headers that not every toolkit has.
static __device__ __forceinline__ void cluster_arrive() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#else
    NO_DEVICE_CODE;
#endif
}

static __device__ __forceinline__ void cluster_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#else
    NO_DEVICE_CODE;
#endif
}

static __device__ __forceinline__ void cluster_store(float * shared, const int rank, const float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    uint32_t to;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(uint32_t(__cvta_generic_to_shared(shared))), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(to), "f"(v) : "memory");
#else
    GGML_UNUSED(shared); GGML_UNUSED(rank); GGML_UNUSED(v);
    NO_DEVICE_CODE;
#endif
}

// A row is shared by a cluster: one block alone would read its 160 KB (C = 4096) at
// the speed of one SM. Each thread takes QUADS times 4 channels, all of whose loads
// are in flight together. The blocks tell each other their sums of squares through
// distributed shared memory: warps*CLUSTER floats in each.
template <int CLUSTER, int QUADS>
static __global__ void __launch_bounds__(1024) conv_add_norm(conv_add_norm_args a) {
    __shared__ float squares[32*CLUSTER];
    const int row  = blockIdx.y;
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE, warps = blockDim.x / WARP_SIZE;
    if constexpr (CLUSTER > 1) {
        cluster_arrive(); // the others must be there before they are written to
    }

    inkling_conv_weights conv[QUADS];
    float4 v[QUADS], weight[QUADS];
    float  mine = 0.0f;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        const int q = (blockIdx.x*QUADS + i)*blockDim.x + threadIdx.x;
        v[i] = weight[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (q < a.quads) {
            conv[i] = inkling_load_conv(a.w, q);
            if (a.norm != nullptr) {
                weight[i] = a.norm[q];
            }
        }
    }
    inkling_wait();
    inkling_release();
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        const int q = (blockIdx.x*QUADS + i)*blockDim.x + threadIdx.x;
        if (q < a.quads) {
            const int64_t at = int64_t(row)*a.quads + q;
            const float4 x = a.x[at];
            v[i] = inkling_short_conv(a.y, a.quads, conv[i], a.table, a.ring, a.rows, row, q, a.quads);
            v[i].x += x.x; v[i].y += x.y; v[i].z += x.z; v[i].w += x.w;
            a.sum[at] = v[i];
            mine += inkling_squares(v[i]);
        }
    }

    mine = warp_reduce_sum(mine);
    if constexpr (CLUSTER > 1) {
        cluster_wait();
        if (lane < CLUSTER) {
            cluster_store(&squares[blockIdx.x*warps + warp], lane, mine);
        }
        cluster_arrive();
        cluster_wait();
    } else {
        if (lane == 0) {
            squares[warp] = mine;
        }
        __syncthreads();
    }
    if (a.norm == nullptr) {
        return;
    }
    float all = 0.0f;
    for (int i = lane; i < warps*CLUSTER; i += WARP_SIZE) {
        all += squares[i];
    }
    const float scale = rsqrtf(warp_reduce_sum(all)/(4*a.quads) + a.eps);
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        const int q = (blockIdx.x*QUADS + i)*blockDim.x + threadIdx.x;
        if (q < a.quads) {
            a.normed[int64_t(row)*a.quads + q] = inkling_scaled(v[i], scale, weight[i]);
        }
    }
}

// With many rows of a sequence a block takes some of them one behind the other, for weights and inputs
// to be read once. Those before the first come from the table, which is written by keep_inputs.
constexpr int many_rows = 8, many_quads = 2, many_threads = 768;

static __global__ void __launch_bounds__(many_threads) conv_add_norm_many(conv_add_norm_args a) {
    __shared__ float squares[2][many_threads/WARP_SIZE];
    const int s = blockIdx.y, t0 = blockIdx.x*many_rows, t1 = min(t0 + many_rows, a.rows.n), first = a.rows.first[s];
    const int warp = threadIdx.x/WARP_SIZE, lane = threadIdx.x % WARP_SIZE, warps = blockDim.x/WARP_SIZE;
    const int64_t row0 = int64_t(s)*a.rows.n, base = int64_t(a.ring.lo + s)*a.ring.rows;

    inkling_conv_weights conv[many_quads];
    float4 inputs[many_quads][INKLING_CONV_K];
#pragma unroll
    for (int i = 0; i < many_quads; i++) {
        const int q = i*blockDim.x + threadIdx.x;
        if (q >= a.quads) {
            continue;
        }
        conv[i] = inkling_load_conv(a.w, q);
#pragma unroll
        for (int back = 1; back < INKLING_CONV_K; back++) {
            const int t = t0 - back, p = first + t;
            inputs[i][INKLING_CONV_K - back] = t >= 0 ? a.y[(row0 + t)*a.quads + q] :
                p >= 0 ? a.table[(base + p % a.ring.size)*a.quads + q] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
    for (int t = t0; t < t1; t++) {
        float4 v[many_quads];
        float  mine = 0.0f;
#pragma unroll
        for (int i = 0; i < many_quads; i++) {
            const int q = i*blockDim.x + threadIdx.x;
            if (q >= a.quads) {
                continue;
            }
            const int64_t at = (row0 + t)*a.quads + q;
            const float4 x = a.x[at];
#pragma unroll
            for (int j = 0; j + 1 < INKLING_CONV_K; j++) {
                inputs[i][j] = inputs[i][j + 1];
            }
            inputs[i][INKLING_CONV_K - 1] = a.y[at];
            v[i] = inkling_convolved(conv[i], inputs[i]);
            v[i].x += x.x; v[i].y += x.y; v[i].z += x.z; v[i].w += x.w;
            a.sum[at] = v[i];
            mine += inkling_squares(v[i]);
        }
        if (a.norm == nullptr) {
            continue;
        }
        float * const of_warps = squares[t & 1]; // those of the row before may still be read
        mine = warp_reduce_sum(mine);
        if (lane == 0) {
            of_warps[warp] = mine;
        }
        __syncthreads();
        const float all = warp_reduce_sum(lane < warps ? of_warps[lane] : 0.0f);
        const float scale = rsqrtf(all/(4*a.quads) + a.eps);
#pragma unroll
        for (int i = 0; i < many_quads; i++) {
            const int q = i*blockDim.x + threadIdx.x;
            if (q < a.quads) {
                a.normed[(row0 + t)*a.quads + q] = inkling_scaled(v[i], scale, __ldg(a.norm + q));
            }
        }
    }
}

// The last inputs of each sequence, as many as its ring holds.
static __global__ void keep_inputs(conv_add_norm_args a) {
    const int s = blockIdx.z, t = a.rows.n - 1 - blockIdx.y, q = blockIdx.x*blockDim.x + threadIdx.x, first = a.rows.first[s];
    if (q < a.quads && first >= 0) {
        a.table[(int64_t(a.ring.lo + s)*a.ring.rows + (first + t) % a.ring.size)*a.quads + q] = a.y[(int64_t(s)*a.rows.n + t)*a.quads + q];
    }
}

constexpr int conv_cluster = 8; // blocks, as many as every Hopper takes

// Channels that one block takes with a float4 for each thread, or two.
constexpr int conv_block_channels = 4*1024;

static bool conv_supports(int device, const ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * y = node->src[0], * x = node->src[3], * norm = node->src[5];
    if (y == nullptr) {
        return false;
    }
    const int64_t channels = y->ne[0], rows = y->ne[1];
    const inkling_ring ring = { p.args[1], p.args[2], p.args[3] };
    const bool few = inkling_few(ring, p.args[0]);
    const int most = !few ? 4*many_quads*many_threads : inkling_is_hopper(device) ? conv_cluster*conv_block_channels : 2*conv_block_channels;
    return channels <= most && rows <= (few ? 65535 : INT_MAX/2) && ring.size <= 65535 && p.args[0] > 0 && rows/p.args[0] <= 65535 &&
        inkling_conv_fits(node->src[1], node->src[2], ring, node->src[4], p.args[0], rows) && node->src[1]->ne[1] == channels &&
        inkling_is(y, GGML_TYPE_F32, channels, rows) && inkling_is(x, GGML_TYPE_F32, channels, rows) &&
        (norm == nullptr || inkling_is(norm, GGML_TYPE_F32, channels, 1)) &&
        inkling_is(node, GGML_TYPE_F32, channels, norm == nullptr ? rows : 2*rows);
}

static void conv_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * norm = node->src[5];
    const int rows = node->src[0]->ne[1], quads = node->src[0]->ne[0]/4;
    const auto in = [&](int i) { return (const float4 *) node->src[i]->data; };
    conv_add_norm_args a;
    a.y      = in(0);
    a.w      = in(1);
    a.x      = in(3);
    a.norm   = norm == nullptr ? nullptr : (const float4 *) norm->data;
    a.table  = (float4 *) node->src[2]->data;
    a.sum    = (float4 *) node->data;
    a.normed = a.sum + int64_t(rows)*quads;
    a.rows   = { (const int32_t *) node->src[4]->data, p.args[0] };
    a.ring   = { p.args[1], p.args[2], p.args[3] };
    a.quads  = quads;
    a.eps    = inkling_float(p.args[4]);

    const auto threads = [](int quads) { return (quads + WARP_SIZE - 1)/WARP_SIZE*WARP_SIZE; };
    if (const int n = a.rows.n; !inkling_few(a.ring, n)) {
        const int seqs = rows/n, kept = std::min(n, int(a.ring.size));
        conv_add_norm_many<<<dim3((n + many_rows - 1)/many_rows, seqs), threads((quads + many_quads - 1)/many_quads), 0, ctx.stream()>>>(a);
        CUDA_CHECK(cudaGetLastError());
        keep_inputs<<<dim3((quads + 255)/256, kept, seqs), 256, 0, ctx.stream()>>>(a);
        CUDA_CHECK(cudaGetLastError());
        return;
    }
    if (quads > 256 && inkling_is_hopper(ctx.device)) {
        inkling_launch(ctx, conv_add_norm<conv_cluster, 1>, dim3(conv_cluster, rows), threads((quads + conv_cluster - 1)/conv_cluster), 0, conv_cluster, a);
    } else if (quads <= conv_block_channels/4) {
        inkling_launch(ctx, conv_add_norm<1, 1>, dim3(1, rows), threads(quads), 0, 1, a);
    } else {
        inkling_launch(ctx, conv_add_norm<1, 2>, dim3(1, rows), threads((quads + 1)/2), 0, 1, a);
    }
}

extern const inkling_fused_op inkling_conv_add_norm = { 201, conv_supports, conv_compute };
#endif
