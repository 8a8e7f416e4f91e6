// Experts of many rows, in four nodes; what experts*.cu share.
#pragma once

#include "fused.cuh"

extern const inkling_fused_op inkling_experts_order; // expertsorder.cu
extern const inkling_fused_op inkling_matrix_up;     // expertsmatrix.cu
extern const inkling_fused_op inkling_matrix_down;
extern const inkling_fused_op inkling_experts_sum;   // expertsorder.cu

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

#include "matrixtiles.cuh"

namespace inkling {

// Most experts that an order is made for.
constexpr int ORDER_EXPERTS = 1024;

// The order of rows by expert, as one tensor of integers: the numbers of routed and of
// shared tiles, how much is done of the four launches with them, the tiles of both, and the
// columns: row·slots + slot.
struct experts_order {
    int64_t routed, shared, columns; // at most

    experts_order(int64_t n, int64_t used, int64_t experts, int64_t n_shared)
        : routed(std::min(experts, n*used) + n*used/TILE_COLUMNS), shared(n_shared*((n + TILE_COLUMNS - 1)/TILE_COLUMNS)), columns(n*(used + n_shared)) {}

    static constexpr int64_t HEAD = 8; // integers

    int64_t next_at(bool down, bool of_shared) const { return 2 + 2*down + of_shared; }
    int64_t tiles_at(bool of_shared) const { return HEAD + (of_shared ? 4*routed : 0); }
    int64_t columns_at() const { return HEAD + 4*(routed + shared); }
    int64_t length() const { return columns_at() + columns; }
};

} // namespace inkling

#endif
