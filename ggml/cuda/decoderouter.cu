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

// A warp for each row: lane l has the experts l, l+32, ... in registers and each
// round takes the largest of all.
template <int EXPERTS> // of a lane, at most
static __global__ void __launch_bounds__(WARP_SIZE) choose_experts(const float * logits, const float * bias,
        int32_t * ids, float * weights, int n_expert, int n_shared, int n_used, float scale) {
    const int row = blockIdx.x, lane = threadIdx.x;
    logits  += int64_t(row)*(n_expert + n_shared);
    ids     += int64_t(row)*n_used;
    weights += int64_t(row)*(n_used + n_shared);

    const auto sigmoid = [](float x) { return 1.0f/(1.0f + expf(-x)); };
    float    sigma[EXPERTS]; // the bias first
    uint32_t choice[EXPERTS];
#pragma unroll
    for (int i = 0; i < EXPERTS; i++) {
        const int e = i*WARP_SIZE + lane;
        sigma[i] = e < n_expert ? bias[e] : 0.0f;
    }
    inkling_wait();
    inkling_release();
#pragma unroll
    for (int i = 0; i < EXPERTS; i++) {
        const int e = i*WARP_SIZE + lane;
        choice[i] = 0;
        if (e < n_expert) {
            const float s = sigmoid(logits[e]);
            choice[i] = ordered(s + sigma[i]);
            sigma[i]  = s;
        }
    }
    float mine = 0.0f; // of lane i the i-th weight
    if (lane >= n_used && lane < n_used + n_shared) {
        mine = sigmoid(logits[n_expert + lane - n_used]);
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

static bool router_supports(int device, const ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * logits = node->src[0], * bias = node->src[1];
    if (logits == nullptr || bias == nullptr) {
        return false;
    }
    const int64_t n_expert = bias->ne[0], n_shared = logits->ne[0] - n_expert, n_used = p.args[0], n = logits->ne[1];
    GGML_UNUSED(device);
    return n_expert <= router_lane_experts*WARP_SIZE && n_shared >= 0 && n_used >= 1 && n_used <= n_expert && n_used + n_shared <= WARP_SIZE &&
        inkling_is(logits, GGML_TYPE_F32, n_expert + n_shared, n) && inkling_is(bias, GGML_TYPE_F32, n_expert, 1) &&
        inkling_is(node, GGML_TYPE_F32, (2*n_used + n_shared)*n, 1);
}

static void router_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const ggml_tensor * logits = node->src[0], * bias = node->src[1];
    const int n_expert = bias->ne[0], n_shared = logits->ne[0] - n_expert, n_used = p.args[0];
    const int n = logits->ne[1];
    int32_t * ids = (int32_t *) node->data;
    const auto launch = [&](auto kernel) {
        inkling_launch(ctx, kernel, n, WARP_SIZE, 0, 1, (const float *) logits->data, (const float *) bias->data,
            ids, (float *) (ids + int64_t(n_used)*n), n_expert, n_shared, n_used, inkling_float(p.args[1]));
    };
    if (n_expert <= 8*WARP_SIZE) {
        launch(choose_experts<8>);
    } else {
        launch(choose_experts<router_lane_experts>);
    }
}

extern const inkling_fused_op inkling_router = { 203, router_supports, router_compute };
#endif
