#include "attention.cuh"
#include "decode.cuh"
#include "dense.cuh"
#include "experts.cuh"
#include "fused.cuh"
#include "products.cuh"
#include "rows.cuh"

#include "ggml-backend-impl.h"

// The operations of the other files of this folder.
static const inkling_fused_op * const inkling_fused_ops[] = {
    nullptr,
#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)
    &inkling_band_attention, &inkling_band_prefill, // attention.cuh
    &inkling_conv_add_norm, &inkling_qkv, &inkling_router, &inkling_routing, &inkling_head_norm, // decode.cuh
    &inkling_products, &inkling_experts_up, &inkling_experts_down, // products.cuh
    &inkling_dense_products, // dense.cuh
    &inkling_experts_order, &inkling_matrix_up, &inkling_matrix_down, &inkling_experts_sum, // experts.cuh
    &inkling_rows, &inkling_row_sums, // rows.cuh
#endif
};

static const inkling_fused_op * find(const ggml_tensor * node) {
    const auto & p = inkling_params(node);
    if (node->op != GGML_OP_CUSTOM || p.magic != INKLING_FUSED_MAGIC) {
        return nullptr;
    }
    for (const auto * op : inkling_fused_ops) {
        if (op != nullptr && op->id == p.id) {
            return op;
        }
    }
    return nullptr;
}

bool inkling_fused_supports(int device, const ggml_tensor * node) {
#if defined(GGML_USE_HIP) || defined(GGML_USE_MUSA) // written for NVIDIA's warps, not tried elsewhere
    GGML_UNUSED(device);
    GGML_UNUSED(node);
    return false;
#else
    for (const auto * src : node->src) { // a weight in host memory: the composition can be split there
        const auto * buffer = src == nullptr ? nullptr : src->view_src != nullptr ? src->view_src->buffer : src->buffer;
        if (buffer != nullptr && buffer->usage == GGML_BACKEND_BUFFER_USAGE_WEIGHTS && ggml_backend_buffer_is_host(const_cast<ggml_backend_buffer *>(buffer))) {
            return false;
        }
    }
    const auto * op = find(node);
    return op != nullptr && op->supports(device, node);
#endif
}

void inkling_fused(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const auto * op = find(node);
    GGML_ASSERT(op != nullptr);
    op->compute(ctx, node);
}

int32_t inkling_fused_count() {
#if defined(GGML_USE_HIP) || defined(GGML_USE_MUSA)
    return 0;
#else
    int32_t n = 0;
    for (const auto * op : inkling_fused_ops) {
        n += op != nullptr;
    }
    return n;
#endif
}
