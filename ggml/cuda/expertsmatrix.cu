#include "experts.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

using namespace inkling;

// Rows of x [k, n] as F16, each times a power of two that takes its largest value to 1024
// and more: none is too large for F16, and those that are too small do not matter beside it.
static __global__ void __launch_bounds__(256) halves_kernel(const float * __restrict__ x, half * __restrict__ y, float * __restrict__ scale, const int k) {
    __shared__ float parts[256/WARP_SIZE];
    const float4 * const from = (const float4 *) (x + int64_t(blockIdx.x)*k);
    float top = 0.0f;
    for (int i = threadIdx.x; i < k/4; i += blockDim.x) {
        const float4 v = from[i];
        top = fmaxf(top, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
    }
    top = warp_reduce_max(top);
    if (threadIdx.x % WARP_SIZE == 0) {
        parts[threadIdx.x/WARP_SIZE] = top;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 256/WARP_SIZE; i++) {
        top = fmaxf(top, parts[i]);
    }
    // of zero and infinity as they are: exponents 0 and 255
    const int exponent = __float_as_int(top) >> 23;
    const int by = exponent == 0 || exponent == 255 ? 0 : min(max(127 + 10 - exponent, -120), 120);
    const float factor = __int_as_float((127 + by) << 23);
    if (threadIdx.x == 0) {
        scale[blockIdx.x] = __int_as_float((127 - by) << 23);
    }
    half * const to = y + int64_t(blockIdx.x)*k;
    for (int i = threadIdx.x; i < k/4; i += blockDim.x) {
        const float4 v = from[i];
        *(half2 *) (to + tile_value(4*i + 0)) = __floats2half2_rn(v.x*factor, v.y*factor);
        *(half2 *) (to + tile_value(4*i + 2)) = __floats2half2_rn(v.z*factor, v.w*factor);
    }
}

// Rows of a tensor as F16 for as long as the launches behind them need them.
struct halves {
    ggml_cuda_pool_alloc<half>  x;
    ggml_cuda_pool_alloc<float> scale;

    halves(ggml_backend_cuda_context & ctx, const float * from, int64_t k, int64_t n) : x(ctx.pool(), k*n), scale(ctx.pool(), n) {
        halves_kernel<<<n, 256, 0, ctx.stream()>>>(from, x.ptr, scale.ptr, int(k));
        CUDA_CHECK(cudaGetLastError());
    }
};

static bool is_matrix_bank(int device, const ggml_tensor * w, int64_t k, int64_t rows, int64_t experts) {
    return w != nullptr && k % TILE_DEPTH == 0 && matrix_warps_of(w->type, ggml_cuda_info().devices[device].smpbo) > 0 &&
        w->ne[0] == k && w->ne[1] == rows && w->ne[2] == experts && w->ne[3] == 1 && ggml_is_contiguous(w) && w->view_offs % 16 == 0 &&
        w->nb[1] <= INT32_MAX/32 && rows % 32 == 0 && rows <= 1 << 16;
}

// What a launch with w is told of the order.
static matrix_args args_of(const halves & h, const ggml_tensor * w, const ggml_tensor * order, const experts_order & o, bool down) {
    int32_t * const at = (int32_t *) order->data;
    matrix_args a = {};
    a.w = (const uint8_t *) w->data;
    a.expert_bytes = w->nb[2];
    a.row_bytes = int(w->nb[1]);
    a.rows      = int(w->ne[1]);
    a.k         = int(w->ne[0]);
    a.x         = h.x.ptr;
    a.x_scale   = h.scale.ptr;
    a.tiles_n   = at;
    a.next      = at + o.next_at(down);
    a.tiles     = (const matrix_tile *) (at + o.TILES_AT);
    a.order     = at + o.columns_at();
    return a;
}

// node: h [ff, used, n]; sources: x [k, n], the order, gate, up.
static bool up_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * x = node->src[0], * order = node->src[1], * gate = node->src[2], * up = node->src[3];
    if (!ampere_mma_available(ggml_cuda_info().devices[device].cc) || order == nullptr || gate == nullptr || up == nullptr) {
        return false;
    }
    const int64_t k = x->ne[0], n = x->ne[1], ff = gate->ne[1], experts = gate->ne[2], used = node->ne[1];
    return inkling_is_activation(x) && x->ne[2] == 1 && used > 0 && experts <= ORDER_EXPERTS && inkling_is(order, GGML_TYPE_I32, experts_order(n, used, experts).length(), 1) &&
        is_matrix_bank(device, gate, k, ff, experts) && is_matrix_bank(device, up, k, ff, experts) && up->type == gate->type &&
        node->type == GGML_TYPE_F32 && ggml_is_contiguous(node) && node->ne[0] == ff && node->ne[2] == n && node->ne[3] == 1;
}

static void up_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const ggml_tensor * x = node->src[0], * gate = node->src[2];
    const auto & device = ggml_cuda_info().devices[ctx.device];
    const experts_order order(x->ne[1], node->ne[1], gate->ne[2]);
    const halves h(ctx, (const float *) x->data, x->ne[0], x->ne[1]);
    auto a  = args_of(h, gate, node->src[1], order, false);
    a.up    = (const uint8_t *) node->src[3]->data;
    a.slots = a.x_of = int(node->ne[1]);
    a.dst   = (float *) node->data;
    matrix_launch<true>(gate->type, a, device.nsm, device.smpbo, ctx.stream());
}

const inkling_fused_op inkling_matrix_up = {305, up_supports, up_compute};

// node: [rows, used, n], weighted; sources: h [ff, used, n], the order, weights [used, n], down.
static bool down_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * h = node->src[0], * order = node->src[1], * weights = node->src[2], * down = node->src[3];
    if (!ampere_mma_available(ggml_cuda_info().devices[device].cc) || order == nullptr || weights == nullptr || down == nullptr) {
        return false;
    }
    const int64_t ff = h->ne[0], used = h->ne[1], n = h->ne[2], rows = down->ne[1], experts = down->ne[2];
    return inkling_is_activation(h) && experts <= ORDER_EXPERTS && inkling_is_columns(weights, GGML_TYPE_F32, used, n) &&
        inkling_is(order, GGML_TYPE_I32, experts_order(n, used, experts).length(), 1) && is_matrix_bank(device, down, ff, rows, experts) &&
        node->type == GGML_TYPE_F32 && ggml_is_contiguous(node) && node->ne[0] == rows && node->ne[1] == used && node->ne[2] == n && node->ne[3] == 1;
}

static void down_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const ggml_tensor * h = node->src[0], * weights = node->src[2], * down = node->src[3];
    const auto & device = ggml_cuda_info().devices[ctx.device];
    const experts_order order(h->ne[2], h->ne[1], down->ne[2]);
    const halves x(ctx, (const float *) h->data, h->ne[0], h->ne[1]*h->ne[2]);
    auto a  = args_of(x, down, node->src[1], order, true);
    a.slots = int(h->ne[1]);
    a.x_of  = 1;
    a.dst   = (float *) node->data;
    a.weights        = (const float *) weights->data;
    a.weights_stride = int(weights->nb[1]/weights->nb[0]);
    matrix_launch<false>(down->type, a, device.nsm, device.smpbo, ctx.stream());
}

const inkling_fused_op inkling_matrix_down = {306, down_supports, down_compute};

#endif
