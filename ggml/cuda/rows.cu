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
#endif
