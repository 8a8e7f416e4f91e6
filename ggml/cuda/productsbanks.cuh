// Experts of few rows: what both launches say of their operands.
#pragma once

#include "products.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

// A bank of matrices: routed experts, or shared ones.
struct inkling_bank {
    const uint8_t * w;
    int64_t expert_bytes;
    int     row_bytes, type, kind;
};

// The experts of every row, by slot: those of ids, then all shared ones. ids is [n_used, n].
struct inkling_choice {
    const int32_t * ids;
    int stride; // int32 from row to row
    int used, slots, experts;

    __device__ __forceinline__ int expert(const int t, const int slot) const {
        if (slot >= used) {
            return slot - used;
        }
        return inkling_expert(ids[t*stride + slot], experts);
    }
};

static inline inkling_bank inkling_bank_of(const ggml_tensor * w) {
    if (w == nullptr) {
        return {};
    }
    return {(const uint8_t *) w->data, int64_t(w->nb[2]), int(w->nb[1]), int(w->type), INKLING_KINDS};
}

static inline bool inkling_is_bank(const ggml_tensor * w, int64_t k, int64_t rows, int64_t experts) {
    return w != nullptr && inkling_kind_of(w->type) < INKLING_KINDS && inkling_is_matrix(w, k) && w->ne[1] == rows && w->ne[2] == experts;
}

#endif
