#include "decode.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

// FusedRouter (203): the experts of each row, chosen by σ(logit) + bias, and the
// weights of these and of the shared ones, σ/Σσ·scale. Of equal choices the lower
// index comes first.
//
//   logits: [n_expert+n_shared, n]           F32, those of the shared experts last
//   bias:   [n_expert]                       F32
//   res:    [(n_used+n_used+n_shared)*n]     F32: ids [n_used, n] as the bits of I32,
//           best first, then weights [n_used+n_shared, n] in that order
//   args:   n_used, scale

constexpr int router_lane_experts = 16; // of one lane, so 512 in all

// Bits that are ordered as the floats are; above 0, which marks what was taken.
static __device__ __forceinline__ uint32_t ordered(const float x) {
    const uint32_t bits = __float_as_uint(x);
    return max(1u, bits & 0x80000000u ? ~bits : bits | 0x80000000u);
}

static __device__ __forceinline__ uint32_t warp_max(uint32_t x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= GGML_CUDA_CC_AMPERE
    return __reduce_max_sync(0xffffffff, x);
#else
    for (int offset = WARP_SIZE/2; offset > 0; offset >>= 1) {
        x = max(x, __shfl_xor_sync(0xffffffff, x, offset));
    }
    return x;
#endif
}

// One row's choice by one warp: lane l has the experts l, l+32, ... in registers and
// each round takes the largest of all. sigma holds the lane's biases and is overwritten.
template <int EXPERTS> // of a lane, at most
static __device__ __forceinline__ void choose(float (&sigma)[EXPERTS], const float * logits, int32_t * ids, float * weights,
        const int n_expert, const int n_shared, const int n_used, const float scale) {
    const int lane = threadIdx.x % WARP_SIZE;
    const auto sigmoid = [&](int i) { return 1.0f/(1.0f + expf(-__ldcg(logits + i))); }; // other blocks may have written it
    uint32_t choice[EXPERTS];
#pragma unroll
    for (int i = 0; i < EXPERTS; i++) {
        const int e = i*WARP_SIZE + lane;
        choice[i] = 0;
        if (e < n_expert) {
            const float s = sigmoid(e);
            choice[i] = ordered(s + sigma[i]);
            sigma[i]  = s;
        }
    }
    float mine = 0.0f; // of lane i the i-th weight
    if (lane >= n_used && lane < n_used + n_shared) {
        mine = sigmoid(n_expert + lane - n_used);
    }

    for (int k = 0; k < n_used; k++) {
        uint32_t best = 0;
        int      at   = 0;
#pragma unroll
        for (int i = 0; i < EXPERTS; i++) {
            if (choice[i] > best) { // of equal ones the first
                best = choice[i];
                at   = i;
            }
        }
        const uint32_t top = warp_max(best);
        // The lowest index among equals, as the largest of what grows the other way.
        const int e = INT_MAX - int(warp_max(best == top ? uint32_t(INT_MAX - (at*WARP_SIZE + lane)) : 0u));
        float s = 0.0f;
#pragma unroll
        for (int i = 0; i < EXPERTS; i++) {
            if (i*WARP_SIZE + lane == e) {
                choice[i] = 0;
                s         = sigma[i];
            }
        }
        s = __shfl_sync(0xffffffff, s, e % WARP_SIZE);
        if (lane == k) {
            mine   = s;
            ids[k] = e;
        }
    }
    const float sum = warp_reduce_sum(mine);
    if (lane < n_used + n_shared) {
        weights[lane] = mine/sum*scale;
    }
}

template <int EXPERTS>
static __device__ __forceinline__ void load_bias(float (&sigma)[EXPERTS], const float * bias, const int n_expert) {
#pragma unroll
    for (int i = 0; i < EXPERTS; i++) {
        const int e = i*WARP_SIZE + threadIdx.x % WARP_SIZE;
        sigma[i] = e < n_expert ? bias[e] : 0.0f;
    }
}

// What both operations have.
struct router_args {
    const float * bias;
    float *       logits;
    int32_t *     ids;
    float *       weights;
    int32_t       n, n_expert, n_shared, n_used;
    float         scale;
};

template <int EXPERTS>
static __device__ __forceinline__ void choose_row(float (&sigma)[EXPERTS], const router_args & a, const int row) {
    choose(sigma, a.logits + int64_t(row)*(a.n_expert + a.n_shared), a.ids + int64_t(row)*a.n_used, a.weights + int64_t(row)*(a.n_used + a.n_shared),
        a.n_expert, a.n_shared, a.n_used, a.scale);
}

// A block of one warp for each row.
template <int EXPERTS>
static __global__ void __launch_bounds__(WARP_SIZE) choose_experts(router_args a) {
    float sigma[EXPERTS];
    load_bias(sigma, a.bias, a.n_expert);
    inkling_wait();
    inkling_release();
    choose_row(sigma, a, blockIdx.x);
}

// Fills in all but the logits; out is where the ids are.
static router_args router_of(const ggml_tensor * bias, int32_t * out, int n, int n_logits, const inkling_op_params & p) {
    router_args a;
    a.bias     = (const float *) bias->data;
    a.ids      = out;
    a.weights  = (float *) (out + int64_t(p.args[0])*n);
    a.n        = n;
    a.n_expert = bias->ne[0];
    a.n_shared = n_logits - a.n_expert;
    a.n_used   = p.args[0];
    a.scale    = inkling_float(p.args[1]);
    return a;
}

static bool router_fits(int64_t n_expert, int64_t n_shared, int64_t n_used) {
    return n_expert <= router_lane_experts*WARP_SIZE && n_shared >= 0 && n_used >= 1 && n_used <= n_expert && n_used + n_shared <= WARP_SIZE;
}

static bool router_supports(int device, const ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * logits = node->src[0], * bias = node->src[1];
    if (logits == nullptr || bias == nullptr) {
        return false;
    }
    const int64_t n_expert = bias->ne[0], n_shared = logits->ne[0] - n_expert, n_used = p.args[0], n = logits->ne[1];
    GGML_UNUSED(device);
    return router_fits(n_expert, n_shared, n_used) &&
        inkling_is(logits, GGML_TYPE_F32, n_expert + n_shared, n) && inkling_is(bias, GGML_TYPE_F32, n_expert, 1) &&
        inkling_is(node, GGML_TYPE_F32, (2*n_used + n_shared)*n, 1);
}

static void router_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const ggml_tensor * logits = node->src[0];
    router_args a = router_of(node->src[1], (int32_t *) node->data, logits->ne[1], logits->ne[0], inkling_params(node));
    a.logits = (float *) logits->data;
    const auto kernel = a.n_expert <= 8*WARP_SIZE ? choose_experts<8> : choose_experts<router_lane_experts>;
    inkling_launch(ctx, kernel, a.n, WARP_SIZE, 0, 1, a);
}

extern const inkling_fused_op inkling_router = { 203, router_supports, router_compute };

// FusedRouting (204): the product with the router as well, of few rows.
//
//   x:       [n_embd, n]                     F32, n up to 8
//   router:  [n_embd, n_expert+n_shared]     F32
//   bias:    [n_expert]                      F32
//   tickets: [>= 1]                          I32, 0 before and after
//   res:     as that of FusedRouter, then the logits [n_expert+n_shared, n]
//   args:    n_used, scale
struct routing_args {
    router_args    r;
    const float4 * x;
    const float4 * w;
    unsigned *     ticket;
    int32_t        quads; // n_embd/4
};

constexpr int routing_threads = 256;
constexpr int routing_logits  = 2; // of a block: 129 blocks for 258
constexpr int routing_rows    = routing_threads/WARP_SIZE; // the last block has a warp for each

// A block keeps its rows of the router in registers, QUADS float4 a thread and row,
// loaded before the wait: of n_embd 4096 all 4 MB are under way while the kernel before
// ends. The block that is done last chooses.
template <int QUADS, int EXPERTS>
static __global__ void __launch_bounds__(routing_threads) route(routing_args a) {
    __shared__ float sums[routing_rows][routing_logits][routing_threads/WARP_SIZE];
    __shared__ bool  last;
    const int warp = threadIdx.x / WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    const int n_logits = a.r.n_expert + a.r.n_shared, first = blockIdx.x*routing_logits;

    float4 w[routing_logits][QUADS];
#pragma unroll
    for (int l = 0; l < routing_logits; l++) {
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            const int q = i*routing_threads + threadIdx.x;
            w[l][i] = q < a.quads && first + l < n_logits ? a.w[int64_t(first + l)*a.quads + q] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }
    inkling_wait();
    inkling_release();
    for (int row = 0; row < a.r.n; row++) {
        float sum[routing_logits] = {};
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            const int q = i*routing_threads + threadIdx.x;
            if (q < a.quads) {
                const float4 x = a.x[int64_t(row)*a.quads + q];
#pragma unroll
                for (int l = 0; l < routing_logits; l++) {
                    sum[l] += w[l][i].x*x.x + w[l][i].y*x.y + w[l][i].z*x.z + w[l][i].w*x.w;
                }
            }
        }
#pragma unroll
        for (int l = 0; l < routing_logits; l++) {
            sum[l] = warp_reduce_sum(sum[l]);
            if (lane == 0) {
                sums[row][l][warp] = sum[l];
            }
        }
    }
    __syncthreads();
    const int row = threadIdx.x/routing_logits, l = threadIdx.x % routing_logits;
    if (row < a.r.n && first + l < n_logits) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < routing_threads/WARP_SIZE; i++) {
            sum += sums[row][l][i];
        }
        a.r.logits[row*n_logits + first + l] = sum;
    }

    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(a.ticket, 1) == gridDim.x - 1;
        if (last) {
            *a.ticket = 0;
        }
    }
    __syncthreads();
    if (last && warp < a.r.n) {
        __threadfence();
        float sigma[EXPERTS];
        load_bias(sigma, a.r.bias, a.r.n_expert);
        choose_row(sigma, a.r, warp);
    }
}

constexpr int routing_quads = 8; // of a thread and row at most, so n_embd up to 8192

static bool routing_supports(int device, const ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * x = node->src[0], * router = node->src[1], * bias = node->src[2], * tickets = node->src[3];
    if (x == nullptr || router == nullptr || bias == nullptr || tickets == nullptr) {
        return false;
    }
    const int64_t n_embd = x->ne[0], n = x->ne[1], n_expert = bias->ne[0], n_logits = router->ne[1], n_shared = n_logits - n_expert, n_used = p.args[0];
    GGML_UNUSED(device);
    return router_fits(n_expert, n_shared, n_used) && n <= routing_rows && n_embd % 4 == 0 && n_embd <= 4*routing_threads*routing_quads &&
        inkling_is(x, GGML_TYPE_F32, n_embd, n) && inkling_is(router, GGML_TYPE_F32, n_embd, n_logits) && inkling_is(bias, GGML_TYPE_F32, n_expert, 1) &&
        tickets->type == GGML_TYPE_I32 && ggml_is_contiguous(tickets) &&
        inkling_is(node, GGML_TYPE_F32, (2*n_used + n_shared + n_logits)*n, 1);
}

template <int QUADS>
static void launch_routing(ggml_backend_cuda_context & ctx, const routing_args & a) {
    const int blocks = (a.r.n_expert + a.r.n_shared + routing_logits - 1)/routing_logits;
    const auto kernel = a.r.n_expert <= 8*WARP_SIZE ? route<QUADS, 8> : route<QUADS, router_lane_experts>;
    inkling_launch(ctx, kernel, blocks, routing_threads, 0, 1, a);
}

static void routing_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const int n = node->src[0]->ne[1], n_logits = node->src[1]->ne[1];
    routing_args a;
    a.r        = router_of(node->src[2], (int32_t *) node->data, n, n_logits, inkling_params(node));
    a.r.logits = a.r.weights + int64_t(a.r.n_used + a.r.n_shared)*n;
    a.x        = (const float4 *) node->src[0]->data;
    a.w        = (const float4 *) node->src[1]->data;
    a.ticket   = (unsigned *) node->src[3]->data;
    a.quads    = node->src[0]->ne[0]/4;
    switch ((a.quads + routing_threads - 1)/routing_threads) {
        case 1:  launch_routing<1>(ctx, a); break;
        case 2:
        case 3:
        case 4:  launch_routing<4>(ctx, a); break;
        case 5:
        case 6:  launch_routing<6>(ctx, a); break;
        default: launch_routing<routing_quads>(ctx, a); break;
    }
}

extern const inkling_fused_op inkling_routing = { 204, routing_supports, routing_compute };
#endif
