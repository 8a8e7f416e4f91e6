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

// The order of rows by expert, as one tensor of integers: the number of tiles, how much is done of
// the two launches with them, the tiles, and the columns: row·used + slot.
struct experts_order {
    int64_t tiles, columns; // at most

    experts_order(int64_t n, int64_t used, int64_t experts) : tiles(std::min(experts, n*used) + n*used/TILE_COLUMNS), columns(n*used) {}

    static constexpr int64_t TILES_AT = 4; // integers

    int64_t next_at(bool down) const { return 1 + down; }
    int64_t columns_at() const { return TILES_AT + 4*tiles; }
    int64_t length() const { return columns_at() + columns; }
};

} // namespace inkling

#endif
