// The small operations between the products of a decoder layer, most of them for few rows.
// What they have in common: a launch each instead of six to twelve, of kernels that take
// as long as any kernel does.
#pragma once

#include "fused.cuh"

extern const inkling_fused_op inkling_conv_add_norm; // decodeconv.cu
extern const inkling_fused_op inkling_qkv;           // decodeqkv.cu
extern const inkling_fused_op inkling_router;        // decoderouter.cu
extern const inkling_fused_op inkling_routing;
extern const inkling_fused_op inkling_head_norm;     // headnorm.cu

// Rows are numbered sequence by sequence, n of each.
struct inkling_rows {
    const int32_t * first; // [n_seq] position of each sequence's first row, -1: idle
    int32_t         n;
};

// The inputs of a short convolution are rows of a table: position p of sequence s is
// row (lo + s)*rows + p % size, so that those of a step and the K-1 before them are
// different ones as long as n + K-1 <= size.
struct inkling_ring {
    int32_t size, rows, lo;
};

constexpr int INKLING_CONV_K = 4; // inputs of a convolution, as every Inkling has

// The weights of 4 neighbouring channels, of a float4 each.
struct inkling_conv_weights {
    float4 w[4];
};

// Before inkling_wait: nobody writes them.
static __device__ __forceinline__ inkling_conv_weights inkling_load_conv(const float4 * __restrict__ w, const int q) {
    return { { w[4*q + 0], w[4*q + 1], w[4*q + 2], w[4*q + 3] } };
}

// The sum of 4 channels' inputs, oldest first.
static __device__ __forceinline__ float4 inkling_convolved(const inkling_conv_weights & c, const float4 (&x)[INKLING_CONV_K]) {
    return make_float4(
        c.w[0].x*x[0].x + c.w[0].y*x[1].x + c.w[0].z*x[2].x + c.w[0].w*x[3].x,
        c.w[1].x*x[0].y + c.w[1].y*x[1].y + c.w[1].z*x[2].y + c.w[1].w*x[3].y,
        c.w[2].x*x[0].z + c.w[2].y*x[1].z + c.w[2].z*x[2].z + c.w[2].w*x[3].z,
        c.w[3].x*x[0].w + c.w[3].y*x[1].w + c.w[3].z*x[2].w + c.w[3].w*x[3].w);
}

// A short convolution of 4 neighbouring channels at one row, and the row's input put
// into the table. What was before the beginning is zero; an idle sequence writes
// nothing.
//
//   y:     [channels, n*n_seq]   the new inputs, row_quads float4 from row to row
//   c:     oldest input first
//   table: [channels, rows]
//   q:     of the 4 channels, of quads = channels/4
static __device__ __forceinline__ float4 inkling_short_conv(const float4 * __restrict__ y, const int row_quads, const inkling_conv_weights & c,
        float4 * table, const inkling_ring ring, const inkling_rows rows, const int row, const int q, const int quads) {
    const int s = row / rows.n;
    const int t = row - s*rows.n;
    const int first = rows.first[s];
    const int64_t base = int64_t(ring.lo + s)*ring.rows;

    float4 x[INKLING_CONV_K];
#pragma unroll
    for (int back = 0; back < INKLING_CONV_K; back++) {
        const int p = first + t - back;
        float4 & v = x[INKLING_CONV_K - 1 - back];
        v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (back <= t) {
            v = y[int64_t(row - back)*row_quads + q];
        } else if (p >= 0) {
            v = table[(base + p % ring.size)*quads + q];
        }
    }
    if (first >= 0) {
        table[(base + (first + t) % ring.size)*quads + q] = x[INKLING_CONV_K - 1];
    }
    return inkling_convolved(c, x);
}

static __device__ __forceinline__ float inkling_squares(const float4 v) {
    return v.x*v.x + v.y*v.y + v.z*v.z + v.w*v.w;
}

static __device__ __forceinline__ float4 inkling_scaled(const float4 v, const float s, const float4 w) {
    return make_float4(v.x*s*w.x, v.y*s*w.y, v.z*s*w.z, v.w*s*w.w);
}

// Whether a ring holds a step's inputs beside those before it, so that these can be read while others are written.
static inline bool inkling_few(const inkling_ring & ring, int64_t n) {
    return n + INKLING_CONV_K - 1 <= ring.size;
}

// The convolution's weights, its table and the rows' positions fit each other.
static inline bool inkling_conv_fits(const ggml_tensor * w, const ggml_tensor * table, const inkling_ring & ring,
        const ggml_tensor * first, int64_t n, int64_t rows) {
    if (w == nullptr || table == nullptr || first == nullptr || n < 1 || rows % n != 0) {
        return false;
    }
    const int64_t channels = w->ne[1], seqs = rows/n;
    return channels % 4 == 0 && inkling_is(w, GGML_TYPE_F32, INKLING_CONV_K, channels) && inkling_is(first, GGML_TYPE_I32, seqs, 1) &&
        inkling_is(table, GGML_TYPE_F32, channels, table->ne[1]) && ring.lo >= 0 && ring.rows >= ring.size && ring.size >= INKLING_CONV_K - 1 &&
        (ring.lo + seqs)*int64_t(ring.rows) <= table->ne[1];
}
