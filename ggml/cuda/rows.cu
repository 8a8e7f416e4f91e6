#include "rows.cuh"

#include "convert.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

// FusedRows (205): rows of a table of any quantised type, of which ggml's GET_ROWS
// knows a few. With it the embedding of tokens needs no visit to the host.
//
//   table: [k, rows]   quantised; k a multiple of 256
//   ids:   [n]         I32
//   res:   [k, n]      F32

// Copies the bytes of row ids[i] to row i of to; units of a row's length in T.
template <typename T>
static __global__ void __launch_bounds__(256) gather_rows(const T * __restrict__ table, const int32_t * __restrict__ ids, T * __restrict__ to, const int units) {
    const T * row = table + int64_t(ids[blockIdx.y])*units;
    for (int i = blockIdx.x*blockDim.x + threadIdx.x; i < units; i += gridDim.x*blockDim.x) {
        to[int64_t(blockIdx.y)*units + i] = row[i];
    }
}

static bool rows_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * table = node->src[0], * ids = node->src[1];
    GGML_UNUSED(device);
    if (table == nullptr || ids == nullptr) {
        return false;
    }
    const int64_t k = table->ne[0], n = ids->ne[0];
    return ggml_is_quantized(table->type) && ggml_get_to_fp32_cuda(table->type) != nullptr && k % QK_K == 0 && n <= 65535 &&
        ggml_row_size(table->type, k) <= INT_MAX && inkling_is(table, table->type, k, table->ne[1]) && inkling_is(ids, GGML_TYPE_I32, n, 1) && inkling_is(node, GGML_TYPE_F32, k, n);
}

static void rows_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const ggml_tensor * table = node->src[0], * ids = node->src[1];
    const int64_t k = table->ne[0], n = ids->ne[0];
    const size_t bytes = ggml_row_size(table->type, k);
    ggml_cuda_pool_alloc<uint8_t> raw(ctx.pool(), bytes*n);
    const auto gather = [&](auto unit) { // ggml aligns tables to more than the largest unit
        using T = decltype(unit);
        const int units = bytes/sizeof(T);
        gather_rows<T><<<dim3((units + 255)/256, n), 256, 0, ctx.stream()>>>((const T *) table->data, (const int32_t *) ids->data, (T *) raw.get(), units);
        CUDA_CHECK(cudaGetLastError());
    };
    if (bytes % sizeof(int4) == 0) {
        gather(int4());
    } else if (bytes % sizeof(int) == 0) {
        gather(int());
    } else {
        gather(uint8_t());
    }
    ggml_get_to_fp32_cuda(table->type)(raw.get(), (float *) node->data, k*n, ctx.stream());
}

extern const inkling_fused_op inkling_rows = { 205, rows_supports, rows_compute };

// FusedRowSums (206): sums of rows of a table, for which nothing is written but the sums.
//
//   table: [k, rows]   F32, F16 or BF16; k a multiple of 4
//   ids:   [n, m]      I32
//   res:   [k, n]      F32: of row i the sum of rows ids[i, j]
template <typename T> struct __align__(4*sizeof(T)) four { T v[4]; };

template <typename T>
static __global__ void __launch_bounds__(256) sum_rows(const four<T> * __restrict__ table, const int32_t * __restrict__ ids, float4 * __restrict__ to, const int quads, const int rows, const int m) {
    const int q = blockIdx.x*blockDim.x + threadIdx.x, n = gridDim.y;
    if (q >= quads) {
        return;
    }
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
    for (int j = 0; j < m; j++) {
        const four<T> x = table[int64_t(inkling_expert(ids[j*n + blockIdx.y], rows))*quads + q];
        sum.x += ggml_cuda_cast<float>(x.v[0]);
        sum.y += ggml_cuda_cast<float>(x.v[1]);
        sum.z += ggml_cuda_cast<float>(x.v[2]);
        sum.w += ggml_cuda_cast<float>(x.v[3]);
    }
    to[int64_t(blockIdx.y)*quads + q] = sum;
}

static bool sums_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * table = node->src[0], * ids = node->src[1];
    GGML_UNUSED(device);
    if (table == nullptr || ids == nullptr) {
        return false;
    }
    const int64_t k = table->ne[0], n = ids->ne[0], m = ids->ne[1];
    return (table->type == GGML_TYPE_F32 || table->type == GGML_TYPE_F16 || table->type == GGML_TYPE_BF16) && k % 4 == 0 && k <= INT_MAX && table->ne[1] <= INT_MAX && n <= 65535 && n*m <= INT_MAX &&
        inkling_is(table, table->type, k, table->ne[1]) && table->view_offs % 16 == 0 && inkling_is(ids, GGML_TYPE_I32, n, m) && inkling_is(node, GGML_TYPE_F32, k, n);
}

template <typename T>
static void sums_of(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const ggml_tensor * table = node->src[0], * ids = node->src[1];
    const int quads = int(table->ne[0]/4);
    sum_rows<T><<<dim3((quads + 255)/256, ids->ne[0]), 256, 0, ctx.stream()>>>((const four<T> *) table->data, (const int32_t *) ids->data, (float4 *) node->data,
        quads, int(table->ne[1]), int(ids->ne[1]));
    CUDA_CHECK(cudaGetLastError());
}

static void sums_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    switch (node->src[0]->type) {
        case GGML_TYPE_F32:  return sums_of<float>(ctx, node);
        case GGML_TYPE_F16:  return sums_of<half>(ctx, node);
        default:             return sums_of<nv_bfloat16>(ctx, node);
    }
}

extern const inkling_fused_op inkling_row_sums = { 206, sums_supports, sums_compute };
#endif
