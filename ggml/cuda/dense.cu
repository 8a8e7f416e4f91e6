#include "dense.cuh"

#if defined(GGML_USE_HIP) || defined(GGML_USE_MUSA)

bool inkling_dense(ggml_backend_cuda_context &, const ggml_tensor *, const ggml_tensor *, ggml_tensor *) { return false; }

#else

#include "matrixweights.cuh"
#include "mma16.cuh"

using namespace inkling;

constexpr int64_t DENSE_ROWS     = 96;      // from which it is worth it
constexpr int64_t DENSE_WEIGHTS  = 1 << 25; // decoded at a time, in 64 MiB
constexpr int     DENSE_THREADS  = 256;
constexpr int     DENSE_EXPONENT = 14;      // of the largest value as F16

// Blocks of 256 weights as F16: a warp decodes one at a time, a lane 8 neighbours.
template <ggml_type type>
static __global__ void __launch_bounds__(DENSE_THREADS) decode_kernel(const uint8_t * __restrict__ w, uint4 * __restrict__ y, const int blocks) {
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ __align__(16) uint8_t last[matrix_type<type>::bytes + 16];
    const int warp = (blockIdx.x*DENSE_THREADS + threadIdx.x)/WARP_SIZE, warps = gridDim.x*DENSE_THREADS/WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    if (matrix_type<type>::table > 0) {
        fill_magnitudes(shared);
        __syncthreads();
    }
    const uint8_t * const table = shared + threadIdx.x % 16*8;
#pragma unroll 4
    for (int i = warp; i < blocks; i += warps) {
        const uint8_t * at = w + int64_t(i)*matrix_type<type>::bytes;
        if (i == blocks - 1) { // reads of whole words end behind it
            for (int b = lane; b < matrix_type<type>::bytes/2; b += WARP_SIZE) {
                ((uint16_t *) last)[b] = ((const uint16_t *) at)[b];
            }
            __syncwarp();
            at = last;
        }
        typename matrix_type<type>::kept kept;
        weights8 v;
        matrix_type<type>::open(kept, at, lane/4);
        matrix_type<type>::read(v, kept, at, lane/4, lane % 4, table);
        y[int64_t(i)*WARP_SIZE + lane] = make_uint4(v[0], v[1], v[2], v[3]);
    }
}

template <ggml_type type>
static void decode(const uint8_t * w, half * y, int64_t weights, int sms, cudaStream_t stream) {
    const int blocks = int(weights/256), most = matrix_type<type>::table > 0 ? 6 : 8; // of a multiprocessor
    decode_kernel<type><<<std::min(sms*most, (blocks*WARP_SIZE + DENSE_THREADS - 1)/DENSE_THREADS), DENSE_THREADS, matrix_type<type>::table, stream>>>(w, (uint4 *) y, blocks);
    CUDA_CHECK(cudaGetLastError());
}

// What the factors of a product are: the bits of the largest value of its rows, and alpha
// and beta of cuBLAS.
struct dense_factors {
    int   top;
    float alpha, beta;
};

struct dense_rows {
    const float * x;
    int64_t row, matrix; // elements between rows and between matrices of them
    int     k, n;

    __device__ const float4 * at(int64_t i) const { return (const float4 *) (x + i/n*matrix + i % n*row); }
};

// A row for each warp.
static __global__ void __launch_bounds__(DENSE_THREADS) largest_kernel(const __grid_constant__ dense_rows rows, const int count, dense_factors * factors) {
    constexpr int warps = DENSE_THREADS/WARP_SIZE;
    __shared__ float parts[warps];
    const int warp = threadIdx.x/WARP_SIZE, lane = threadIdx.x % WARP_SIZE, row = blockIdx.x*warps + warp;
    float top = 0.0f;
    if (row < count) {
        const float4 * const x = rows.at(row);
        for (int i = lane; i < rows.k/4; i += WARP_SIZE) {
            const float4 v = x[i];
            top = fmaxf(top, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
        }
    }
    top = warp_reduce_max(top);
    if (lane == 0) {
        parts[warp] = top;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < warps; i++) {
            top = fmaxf(top, parts[i]);
        }
        atomicMax(&factors->top, __float_as_int(top));
    }
}

// Rows as F16, all times one power of two: none is too large, and those that are a hundred
// million times smaller than the largest keep all bits. Beside an infinite one they stay as they are.
static __global__ void __launch_bounds__(DENSE_THREADS) scaled_kernel(const __grid_constant__ dense_rows rows, half * __restrict__ y, dense_factors * factors) {
    const int exponent = factors->top >> 23; // of zero and infinity as they are: 0 and 255
    const int by = exponent == 0 || exponent == 255 ? 0 : min(max(127 + DENSE_EXPONENT - exponent, -120), 120);
    const float factor = __int_as_float((127 + by) << 23);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        factors->alpha = __int_as_float((127 - by) << 23);
    }
    const float4 * const x = rows.at(blockIdx.x);
    uint2 * const to = (uint2 *) (y + int64_t(blockIdx.x)*rows.k);
    for (int i = threadIdx.x; i < rows.k/4; i += DENSE_THREADS) {
        const float4 v = x[i];
        to[i] = make_uint2(packed(v.x*factor, v.y*factor), packed(v.z*factor, v.w*factor));
    }
}

static bool has_decoder(ggml_type type) {
    switch (type) {
#define INKLING_CASE(t) case t:
        INKLING_MATRIX_TYPES(INKLING_CASE)
#undef INKLING_CASE
            return true;
        default:
            return false;
    }
}

static void decode(ggml_type type, const uint8_t * w, half * y, int64_t weights, int sms, cudaStream_t stream) {
    switch (type) {
#define INKLING_CASE(t) case t: decode<t>(w, y, weights, sms, stream); break;
        INKLING_MATRIX_TYPES(INKLING_CASE)
#undef INKLING_CASE
        default: GGML_ABORT("no decoder for %s", ggml_type_name(type));
    }
}

// Cards of data centres have this much shared memory for a block, and add products of F16 in F32 at
// the full rate of their tensor cores.
static bool adds_fast(int device) {
    const auto & info = ggml_cuda_info().devices[device];
    return GGML_CUDA_CC_IS_NVIDIA(info.cc) && ampere_mma_available(info.cc) && info.smpbo >= 128*1024;
}

static bool is_dense_weight(const ggml_tensor * w, int64_t k) {
    return has_decoder(w->type) && w->ne[0] == k && k % 256 == 0 && k <= DENSE_WEIGHTS && w->ne[1] <= INT32_MAX && w->ne[3] == 1 &&
        ggml_is_contiguous(w) && w->view_offs % 16 == 0;
}

// Matrices of rows as F16 for as long as the launches behind them need them.
struct dense_operand {
    const dense_rows rows;
    ggml_cuda_pool_alloc<half>          x;
    ggml_cuda_pool_alloc<dense_factors> factors;

    dense_operand(ggml_backend_cuda_context & ctx, const ggml_tensor * from)
        : rows{(const float *) from->data, int64_t(from->nb[1]/sizeof(float)), int64_t(from->nb[2]/sizeof(float)), int(from->ne[0]), int(from->ne[1])},
          x(ctx.pool(), ggml_nelements(from)), factors(ctx.pool(), 1) {
        const int count = int(ggml_nrows(from)), at_once = DENSE_THREADS/WARP_SIZE;
        CUDA_CHECK(cudaMemsetAsync(factors.ptr, 0, sizeof(dense_factors), ctx.stream()));
        largest_kernel<<<(count + at_once - 1)/at_once, DENSE_THREADS, 0, ctx.stream()>>>(rows, count, factors.ptr);
        CUDA_CHECK(cudaGetLastError());
        scaled_kernel<<<count, DENSE_THREADS, 0, ctx.stream()>>>(rows, x.ptr, factors.ptr);
        CUDA_CHECK(cudaGetLastError());
    }
};

// dst = matrix i of w times matrix i of x; stride is from row to row of dst.
static void dense_multiply(ggml_backend_cuda_context & ctx, const ggml_tensor * w, const dense_operand & x, int64_t i, float * dst, int64_t stride) {
    const int64_t k = w->ne[0], m = w->ne[1], n = x.rows.n, together = std::min(m, DENSE_WEIGHTS/k); // rows of weights
    ggml_cuda_pool_alloc<half> decoded(ctx.pool(), k*together);
    const cublasHandle_t cublas = ctx.cublas_handle();
    CUBLAS_CHECK(cublasSetStream(cublas, ctx.stream()));
    CUBLAS_CHECK(cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_DEVICE));
    for (int64_t row = 0; row < m; row += together) {
        const int64_t here = std::min(together, m - row);
        decode(w->type, (const uint8_t *) w->data + i*w->nb[2] + row*w->nb[1], decoded.ptr, here*k, ggml_cuda_info().devices[ctx.device].nsm, ctx.stream());
        CUBLAS_CHECK(cublasGemmEx(cublas, CUBLAS_OP_T, CUBLAS_OP_N, int(here), int(n), int(k),
            &x.factors.ptr->alpha, decoded.ptr, CUDA_R_16F, int(k), x.x.ptr + i*n*k, CUDA_R_16F, int(k),
            &x.factors.ptr->beta, dst + row, CUDA_R_32F, int(stride), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    }
    CUBLAS_CHECK(cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_HOST));
}

bool inkling_dense(ggml_backend_cuda_context & ctx, const ggml_tensor * src0, const ggml_tensor * src1, ggml_tensor * dst) {
    if (src1->ne[1] < DENSE_ROWS || !adds_fast(ctx.device) || !is_dense_weight(src0, src1->ne[0]) || ggml_nrows(src1) > INT32_MAX ||
        src1->type != GGML_TYPE_F32 || src1->nb[0] != sizeof(float) || src1->nb[1] % 16 != 0 || src1->nb[2] % 16 != 0 || src1->view_offs % 16 != 0 ||
        src1->ne[2] != src0->ne[2] || src1->ne[3] != 1 || dst->type != GGML_TYPE_F32 || !ggml_is_contiguous(dst)) {
        return false;
    }
    const dense_operand x(ctx, src1);
    for (int64_t i = 0; i < src0->ne[2]; i++) {
        dense_multiply(ctx, src0, x, i, (float *) dst->data + i*ggml_nelements(dst)/src0->ne[2], src0->ne[1]);
    }
    return true;
}

// node: for each group of weights [sum of their m_i, n], these behind each other; sources: x [k, n] and up to
// 4 weights [k, m_i]; arguments: the group of each weight, counted from 0 on.
static bool products_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * x = node->src[0];
    const auto & p = inkling_params(node);
    int64_t m = 0;
    int count = 0;
    for (; count < 4 && node->src[1 + count] != nullptr; count++) {
        const ggml_tensor * w = node->src[1 + count];
        const int group = p.args[count], before = count == 0 ? 0 : p.args[count - 1];
        if (w->ne[2] != 1 || !is_dense_weight(w, x->ne[0]) || group < before || group > before + (count > 0)) {
            return false;
        }
        m += w->ne[1];
    }
    return adds_fast(device) && x->ne[1] >= DENSE_ROWS && x->ne[1] <= INT32_MAX && x->ne[2] == 1 && inkling_is_activation(x) && m > 0 && m <= INT32_MAX &&
        node->src[1 + count] == nullptr && inkling_is(node, GGML_TYPE_F32, m*x->ne[1], 1);
}

static void products_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const auto & p = inkling_params(node);
    const dense_operand x(ctx, node->src[0]);
    float * to = (float *) node->data;
    for (int i = 0, end; node->src[1 + i] != nullptr; i = end) {
        int64_t width = 0; // of the group
        for (end = i; node->src[1 + end] != nullptr && p.args[end] == p.args[i]; end++) {
            width += node->src[1 + end]->ne[1];
        }
        float * column = to;
        for (int j = i; j < end; j++) {
            dense_multiply(ctx, node->src[1 + j], x, 0, column, width);
            column += node->src[1 + j]->ne[1];
        }
        to += width*x.rows.n;
    }
}

extern const inkling_fused_op inkling_dense_products = {308, products_supports, products_compute};

#endif
