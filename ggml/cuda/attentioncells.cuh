// Tiles of cached keys and values in shared memory as F16, and what parts of a
// softmax are merged with.
#pragma once

#include "mma16.cuh"

#include <cuda_bf16.h>
#include <limits.h>
#include <math.h>

namespace inkling {

constexpr int no_window = INT_MAX/2; // more than any distance

enum class cell_type { f16, bf16, q8_0, f32 };

// How many F16 values a cached one takes: F32 is the sum of two.
constexpr __host__ __device__ int cell_planes(cell_type type) { return type == cell_type::f32 ? 2 : 1; }

// A tile of n cells x head_dim, aligned to a row. 16 bytes of a row are moved by the row
// modulo 8, so that neither ldmatrix nor stores meet in a bank.
template <cell_type type, int head_dim, int n>
struct cell_tile {
    static constexpr int planes = cell_planes(type);
    static constexpr int bytes = planes*n*head_dim*2;
    static constexpr int chunks = head_dim/8; // of 8 values
    static_assert(head_dim % 64 == 0 && n*chunks % 32 == 0, "whole rows of 8 chunks");

    static __device__ __forceinline__ char * at(char * tile, int plane, int row, int chunk) {
        return tile + ((plane*n + row)*chunks + (chunk ^ row % 8))*16;
    }

    // For the fragment of 16 rows from row on and 16 columns from 16x on: the address that
    // load_tiles takes is the one given here, with 32x flipped in (XOR). The rows are those
    // of a; transposed, they are its columns.
    static __device__ __forceinline__ unsigned fragment(const char * tile, int plane, int row, int lane) {
        return shared_address(tile) + (plane*n + row + lane%16)*chunks*16 + (lane/16 ^ lane%8)*16;
    }
    static __device__ __forceinline__ unsigned fragment_transposed(const char * tile, int plane, int row, int lane) {
        return shared_address(tile) + (plane*n + row + lane%8 + lane/16*8)*chunks*16 + (lane/8%2 ^ lane%8)*16;
    }

    // The same for two fragments of 8 columns each, of which the cells are the columns.
    static __device__ __forceinline__ unsigned fragment_columns(const char * tile, int row, int lane) {
        return shared_address(tile) + (row + lane%8 + lane/16*8)*chunks*16 + (lane/8%2 ^ lane%8)*16;
    }

    // Copies the chunk of a cell at src, or zeros. F16 arrives with the group of copies
    // that is committed next.
    static __device__ __forceinline__ void fetch(char * tile, int row, int chunk, const char * src, bool valid) {
        if constexpr (type == cell_type::f16) {
            copy16(at(tile, 0, row, chunk), src + chunk*16, valid);
        } else {
            store(tile, row, chunk, src, valid);
        }
    }

    // The same of the cells from cell on, by one warp, around the end of a ring if there
    // is one; those from valid on are zero.
    static __device__ __forceinline__ void fetch_all(char * tile, const char * from, int64_t pitch, int cell, int ring, int valid, int lane) {
#pragma unroll
        for (int x = 0; x < n*chunks/32; x++) {
            const int row = (x*32 + lane)/chunks, chunk = (x*32 + lane)%chunks;
            int c = cell + row;
            c = ring > 0 && c >= ring ? c - ring : c;
            c = row < valid ? c : cell; // which exists
            fetch(tile, row, chunk, from + c*pitch, row < valid);
        }
    }

private:
    static __device__ __forceinline__ void store(char * tile, int row, int chunk, const char * src, bool valid) {
        float x[8] = {};
        if (valid) {
            if constexpr (type == cell_type::f32) {
                const float4 a = ((const float4 *) src)[2*chunk], b = ((const float4 *) src)[2*chunk + 1];
                x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
            } else if constexpr (type == cell_type::bf16) {
                const uint4 a = ((const uint4 *) src)[chunk];
                const uint32_t w[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    x[2*i]     = __uint_as_float(w[i] << 16);
                    x[2*i + 1] = __uint_as_float(w[i] & 0xffff0000);
                }
            } else { // blocks of 32: an F16 scale, then bytes; aligned to 2
                const char * const block = src + chunk/4*34;
                const float scale = __half2float(*(const half *) block);
                const uint16_t * const two = (const uint16_t *) (block + 2 + chunk%4*8);
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    x[2*i]     = scale*(int8_t) (two[i] & 0xff);
                    x[2*i + 1] = scale*(int8_t) (two[i] >> 8);
                }
            }
        }
        uint32_t high[4], low[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            split(x[2*i], x[2*i + 1], high[i], low[i]);
        }
        *(uint4 *) at(tile, 0, row, chunk) = {high[0], high[1], high[2], high[3]};
        if constexpr (planes == 2) {
            *(uint4 *) at(tile, 1, row, chunk) = {low[0], low[1], low[2], low[3]};
        }
    }
};

// Four values of a weighted sum over keys, of which parts were computed with
// different highest scores (to the base 2). All parts tell theirs first.
struct merged {
    float  top = -INFINITY, sum = 0;
    float4 o = {0, 0, 0, 0};

    __device__ __forceinline__ void highest(float t) { top = fmaxf(top, t); }

    // part: its highest score, -inf if it saw no key, and its sum
    __device__ __forceinline__ void add(float2 part, float4 x) {
        if (part.x == -INFINITY) {
            return;
        }
        const float w = exp2f(part.x - top);
        sum += w*part.y;
        add(w, x);
    }

    __device__ __forceinline__ void add(float w, float4 x) {
        o.x += w*x.x, o.y += w*x.y, o.z += w*x.z, o.w += w*x.w;
    }
};

} // namespace inkling
