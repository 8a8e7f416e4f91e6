#include "experts.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

using namespace inkling;

constexpr int ORDER_THREADS = 1024;
static_assert(ORDER_EXPERTS <= ORDER_THREADS, "an expert for each thread");

struct order_args {
    const int32_t * ids; // [used, n]
    int stride, n, used, experts;
    int32_t * order;
    int columns_at;
};

// The sum of x over the threads before this one.
static __device__ int sum_before(const int x, int * const parts) {
    const int lane = threadIdx.x % WARP_SIZE, warp = threadIdx.x/WARP_SIZE;
    int sum = x;
#pragma unroll
    for (int d = 1; d < WARP_SIZE; d *= 2) {
        const int other = __shfl_up_sync(0xFFFFFFFF, sum, d);
        sum += lane >= d ? other : 0;
    }
    if (lane == WARP_SIZE - 1) {
        parts[warp] = sum;
    }
    __syncthreads();
    int before = 0;
    for (int i = 0; i < warp; i++) {
        before += parts[i];
    }
    __syncthreads(); // parts are written again
    return before + sum - x;
}

// In one block. Within an expert rows come in any order: a column's products do not depend
// on the columns beside it.
static __global__ void __launch_bounds__(ORDER_THREADS, 1) order_kernel(const __grid_constant__ order_args a) {
    __shared__ int count[ORDER_EXPERTS], next[ORDER_EXPERTS], parts[ORDER_THREADS/WARP_SIZE];
    const int i = threadIdx.x;
    matrix_tile * const tiles = (matrix_tile *) (a.order + experts_order::TILES_AT);
    int32_t * const columns = a.order + a.columns_at;
    const auto expert = [&](int at) { return inkling_expert(a.ids[int64_t(at/a.used)*a.stride + at % a.used], a.experts); };
    if (i < a.experts) {
        count[i] = 0;
    }
    if (i < experts_order::TILES_AT) {
        a.order[i] = 0;
    }
    __syncthreads();
    for (int at = i; at < a.n*a.used; at += ORDER_THREADS) {
        atomicAdd(&count[expert(at)], 1);
    }
    __syncthreads();
    const int mine = i < a.experts ? count[i] : 0, mine_tiles = (mine + TILE_COLUMNS - 1)/TILE_COLUMNS;
    const int first = sum_before(mine, parts), first_tile = sum_before(mine_tiles, parts);
    if (i < a.experts) {
        next[i] = first;
        for (int t = 0; t < mine_tiles; t++) {
            tiles[first_tile + t] = {i, first + t*TILE_COLUMNS, min(TILE_COLUMNS, mine - t*TILE_COLUMNS), 0};
        }
    }
    if (i == ORDER_THREADS - 1) { // behind all experts
        a.order[0] = first_tile + mine_tiles;
    }
    __syncthreads();
    for (int at = i; at < a.n*a.used; at += ORDER_THREADS) {
        columns[atomicAdd(&next[expert(at)], 1)] = at;
    }
}

// node: the order; source: ids; argument: experts.
static bool order_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * ids = node->src[0];
    const auto & p = inkling_params(node);
    const int64_t used = ids->ne[0], n = ids->ne[1], experts = p.args[0];
    return ampere_mma_available(ggml_cuda_info().devices[device].cc) && inkling_is_columns(ids, GGML_TYPE_I32, used, n) &&
        experts > 0 && experts <= ORDER_EXPERTS && n*used <= 1 << 26 &&
        inkling_is(node, GGML_TYPE_I32, experts_order(n, used, experts).length(), 1);
}

static void order_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const ggml_tensor * ids = node->src[0];
    const auto & p = inkling_params(node);
    const experts_order order(ids->ne[1], ids->ne[0], p.args[0]);
    const order_args a = {(const int32_t *) ids->data, int(ids->nb[1]/ids->nb[0]), int(ids->ne[1]), int(ids->ne[0]), p.args[0],
        (int32_t *) node->data, int(order.columns_at())};
    order_kernel<<<1, ORDER_THREADS, 0, ctx.stream()>>>(a);
    CUDA_CHECK(cudaGetLastError());
}

const inkling_fused_op inkling_experts_order = {304, order_supports, order_compute};

// dst [rows, n] is the sum of y [rows, slots, n] over slots, in their order, and of weights [shared, n]
// times z [rows, n, shared].
struct sum_args {
    const float4 * y, * z;
    const float  * weights;
    float4 * dst;
    int quads, slots, shared, n, weights_stride;
};

static __global__ void slots_sum_kernel(const __grid_constant__ sum_args a) {
    const int i = blockIdx.x*blockDim.x + threadIdx.x;
    if (i >= a.quads) {
        return;
    }
    const int64_t t = blockIdx.y;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int s = 0; s < a.slots; s++) {
        const float4 v = a.y[(t*a.slots + s)*a.quads + i];
        sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
    }
    for (int s = 0; s < a.shared; s++) {
        const float4 v = a.z[(int64_t(s)*a.n + t)*a.quads + i];
        const float w = a.weights[t*a.weights_stride + s];
        sum.x += w*v.x; sum.y += w*v.y; sum.z += w*v.z; sum.w += w*v.w;
    }
    a.dst[t*a.quads + i] = sum;
}

// node: the sum; sources: y and, where experts are shared, z and weights.
static bool sum_supports(int, const ggml_tensor * node) {
    const ggml_tensor * y = node->src[0], * z = node->src[1], * weights = node->src[2];
    const int64_t rows = y->ne[0], n = y->ne[2];
    return inkling_is_activation(y) && rows % 4 == 0 && n <= 65535 && inkling_is(node, GGML_TYPE_F32, rows, n) &&
        (z == nullptr || (inkling_is_activation(z) && z->ne[0] == rows && z->ne[1] == n && weights != nullptr && inkling_is_columns(weights, GGML_TYPE_F32, z->ne[2], n)));
}

static void sum_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const ggml_tensor * y = node->src[0], * z = node->src[1], * weights = node->src[2];
    sum_args a = {};
    a.y     = (const float4 *) y->data;
    a.dst   = (float4 *) node->data;
    a.quads = int(y->ne[0]/4);
    a.slots = int(y->ne[1]);
    a.n     = int(y->ne[2]);
    if (z != nullptr) {
        a.z       = (const float4 *) z->data;
        a.shared  = int(z->ne[2]);
        a.weights = (const float *) weights->data;
        a.weights_stride = int(weights->nb[1]/weights->nb[0]);
    }
    slots_sum_kernel<<<dim3((a.quads + 255)/256, a.n), 256, 0, ctx.stream()>>>(a);
    CUDA_CHECK(cudaGetLastError());
}

const inkling_fused_op inkling_experts_sum = {307, sum_supports, sum_compute};

#endif
