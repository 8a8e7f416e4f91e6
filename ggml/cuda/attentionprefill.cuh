// The kernel of attention with many rows of one sequence: attention.cuh says what it computes.
#pragma once

#include "attentioncells.cuh"
#include "mma16.cuh"

namespace inkling {

// What a launch of band_prefill works on. Strides as in band_decode_args.
struct band_prefill_args {
    const float * q;    // [head_dim, n_head, n]
    const float * r;    // [d_rel, n_head, n]
    const half *  proj; // [d_rel, extent], d_rel 8 or 16
    const char *  k;    // [head_dim, cells, n_head_kv]: positions before fresh
    const char *  v;
    const char *  k_new; // [head_dim, n, n_head_kv]: positions from fresh on
    const char *  v_new;
    float *       out;   // [head_dim, n_head, n]
    float *       parts; // [head_dim, n_head, n, splits], if keys are shared out
    float2 *      sums;  // [n_head, n, splits]: highest score, sum

    int64_t q1, q2, r1, r2;
    int64_t k1, k2, v1, v2, k1_new, k2_new, v1_new, v2_new;

    int   n, n_head, n_head_kv, d_rel;
    int   first;  // position of the first row
    int   fresh;  // INT_MAX if all keys are in k
    int   extent; // distances that have a bias
    int   window; // distances that are seen; no_window without one
    int   ring;   // position p < fresh is in cell p mod ring; 0: in cell p
    float scale;  // of q·k
};

// Rows of proj that the keys of a stage meet: whole 256 bytes of them.
template <int tiles, int warps, int keys>
constexpr __host__ __device__ int band_prefill_proj_rows(int G) {
    return (keys + (16*tiles*warps - 1)/G + 2 + 7)/8*8;
}

// Shared memory of a block of band_prefill, G query heads a kv head.
template <cell_type type, int head_dim, int tiles, int warps, int keys, int stages>
constexpr int band_prefill_shared(int G) {
    return stages*(2*cell_tile<type, head_dim, keys>::bytes + band_prefill_proj_rows<tiles, warps, keys>(G)*32);
}

// Attention of n rows of one sequence. A block takes warps*tiles*16 of the n*G rows of a
// kv head (row = i*G + g) and goes with all of its warps through the positions that any of
// them sees, keys at a time.
//
// A tile of 16 rows meets 16/G distances a key, each of them one product of the r of the
// rows that it belongs to with proj's rows, read at a distance one further on: so neither
// the bias nor the mask of a row and a key is ever in memory.
//
// The highest score of a row is followed loosely: it is left alone until a score exceeds
// it by 2^slack, so that most tiles scale nothing.
//
// grid: rows of a kv head over those of a block, n_head_kv, splits
template <cell_type type, int head_dim, int tiles, int warps, int keys, int stages, int step, int blocks>
static __global__ void __launch_bounds__(32*warps, blocks) band_prefill(const band_prefill_args a) {
#if __CUDA_ARCH__ >= 800
    constexpr int rows  = 16*tiles; // of a warp
    constexpr int steps = head_dim/16;
    constexpr int cols  = step/8;   // tiles of 8 keys of a step
    constexpr float log2e = 1.44269504f, slack = 6;
    using tile = cell_tile<type, head_dim, keys>;
    static_assert(tile::planes == 1, "one product a value");

    extern __shared__ __align__(256) char shared[];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int head_kv = blockIdx.y, G = a.n_head/a.n_head_kv;
    const int block_row = (gridDim.x - 1 - blockIdx.x)*rows*warps; // those with the most keys first
    const int row0 = block_row + warp*rows, n_rows = min(rows, a.n*G - row0);

    // Positions of the block's rows and of the warp's, and those that the block sees.
    const int block_from = a.first + block_row/G, block_to = a.first + min((block_row + rows*warps - 1)/G, a.n - 1);
    const int from = a.first + row0/G, to = n_rows > 0 ? a.first + (row0 + n_rows - 1)/G : -1;
    int begin = a.window == no_window ? 0 : max(0, block_from - a.window + 1);
    int end = block_to + 1;
    { // this block's share
        const int chunk = ((end - begin + gridDim.z - 1)/gridDim.z + keys - 1)/keys*keys;
        begin += blockIdx.z*chunk;
        end = min(end, begin + chunk);
    }

    const int proj_rows = band_prefill_proj_rows<tiles, warps, keys>(G);
    const int stage_bytes = 2*tile::bytes + proj_rows*32;
    const char * const k = a.k + head_kv*a.k2, * const v = a.v + head_kv*a.v2;
    const char * const k_new = a.k_new + head_kv*a.k2_new, * const v_new = a.v_new + head_kv*a.v2_new;

    // Keys, values, and the rows of proj for all distances between them and the block's
    // rows: those outside of the band are zero. The halves of a row of proj change places
    // every 4 rows, so that 8 neighbours fill all banks.
    constexpr int at_once = 32*warps/tile::chunks; // rows of a tile that the block copies at once
    static_assert(at_once % 8 == 0 && keys % at_once == 0, "a thread copies the same chunk of each");
    const int my_row = threadIdx.x/tile::chunks, my_chunk = threadIdx.x%tile::chunks;
    const auto fetch = [&](int p, int stage) {
        if (p < end) {
            char * const at = shared + stage*stage_bytes;
            const bool is_new = p >= a.fresh; // of the first
            const int first_cell = is_new ? p - a.fresh : a.ring > 0 ? p % a.ring : p;
            if (p + keys <= end && (is_new || (p + keys <= a.fresh && (a.ring == 0 || first_cell + keys <= a.ring)))) {
                const int64_t k1 = is_new ? a.k1_new : a.k1, v1 = is_new ? a.v1_new : a.v1;
                const char * k_at = (is_new ? k_new : k) + (first_cell + my_row)*k1;
                const char * v_at = (is_new ? v_new : v) + (first_cell + my_row)*v1;
#pragma unroll
                for (int x = 0; x < keys; x += at_once) {
                    tile::fetch(at,               my_row + x, my_chunk, k_at, true);
                    tile::fetch(at + tile::bytes, my_row + x, my_chunk, v_at, true);
                    k_at += at_once*k1;
                    v_at += at_once*v1;
                }
            } else { // around the end of a ring, or partly new, or the last ones
#pragma unroll 1
                for (int row = my_row; row < keys; row += at_once) {
                    const bool valid = p + row < end;
                    const int position = valid ? p + row : p;
                    const bool is_new = position >= a.fresh;
                    const int cell = is_new ? position - a.fresh : a.ring > 0 ? position % a.ring : position;
                    tile::fetch(at,               row, my_chunk, is_new ? k_new + cell*a.k1_new : k + cell*a.k1, valid);
                    tile::fetch(at + tile::bytes, row, my_chunk, is_new ? v_new + cell*a.v1_new : v + cell*a.v1, valid);
                }
            }
            const int lowest = block_from - p - keys + 1;
            if (lowest < a.extent) {
                for (int x = threadIdx.x; x < 2*proj_rows; x += 32*warps) {
                    const int row = x/2, c = x%2, distance = lowest + row;
                    const bool valid = distance >= 0 && distance < a.extent && 8*c < a.d_rel;
                    copy16(at + 2*tile::bytes + row*32 + (c ^ row/4%2)*16, a.proj + (valid ? distance*a.d_rel + 8*c : 0), valid);
                }
            }
        }
        copy_commit();
    };
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        fetch(begin + s*keys, s);
    }

    // Rows lane/4 and +8 of each tile as a fragments, and where they stand; rows that do
    // not exist see nothing.
    uint32_t q[tiles][steps][4], r[tiles][4];
    int position[tiles][2];
#pragma unroll
    for (int t = 0; t < tiles; t++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int row = t*16 + lane/4 + 8*e, c = lane%4*2;
            const bool valid = row < n_rows;
            const int i = (row0 + row)/G, head = head_kv*G + (row0 + row)%G;
            position[t][e] = valid ? a.first + i : -1;
            const float * const q_row = a.q + i*a.q2 + head*a.q1;
            const float * const r_row = a.r + i*a.r2 + head*a.r1;
            const float scale = a.scale*log2e;
#pragma unroll
            for (int s = 0; s < steps; s++) {
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const float2 x = valid ? *(const float2 *) (q_row + s*16 + c + 8*h) : float2{0, 0};
                    q[t][s][e + 2*h] = packed(x.x*scale, x.y*scale);
                }
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const float2 x = valid && c + 8*h < a.d_rel ? *(const float2 *) (r_row + c + 8*h) : float2{0, 0};
                r[t][e + 2*h] = packed(x.x*log2e, x.y*log2e);
            }
        }
    }

    // A row's top is finite from the beginning, so that one that saw nothing yet needs
    // no care; what is left of it then is 0.
    float o[tiles][2*steps][4] = {};
    float top[tiles][2], sum[tiles][2]; // of rows lane/4 and +8; sum of this lane's keys alone
#pragma unroll
    for (int t = 0; t < tiles; t++) {
        top[t][0] = top[t][1] = -1e30f;
        sum[t][0] = sum[t][1] = 0;
    }

    int stage = 0;
    for (int block_p = begin; block_p < end; block_p += keys) {
        copy_wait<stages - 2>();
        __syncthreads(); // this stage has arrived, and nobody reads the one before
        fetch(block_p + (stages - 1)*keys, stage == 0 ? stages - 1 : stage - 1);
        char * const at = shared + stage*stage_bytes;
        stage = stage == stages - 1 ? 0 : stage + 1;

#pragma unroll 1
        for (int key = 0; key < keys; key += step) {
            const int p = block_p + key, last = p + step - 1;
            if (p > to || from - last >= a.window) {
                continue; // no row of the warp sees any
            }
            // Scores, to the base 2. A fragment loaded holds two tiles of 8 keys.
            float s[tiles][cols][4] = {};
            const unsigned k_at = tile::fragment_columns(at, key, lane);
#pragma unroll
            for (int x = 0; x < steps; x++) {
#pragma unroll
                for (int y = 0; y < cols; y += 2) {
                    uint32_t f[4];
                    load_tiles(f, (k_at + y*8*head_dim*2) ^ 32*x);
#pragma unroll
                    for (int t = 0; t < tiles; t++) {
                        multiply(s[t][y],     q[t][x], f[0], f[1]);
                        multiply(s[t][y + 1], q[t][x], f[2], f[3]);
                    }
                }
            }
            if (from - last < a.extent) {
                // Of row i: the distance to the lane's key, from that of row 0 of the stage.
                const int base = keys - 1 - key - lane%8 - lane/16*8 - block_row/G, half = lane/8%2;
                const unsigned proj_at = shared_address(at + 2*tile::bytes);
#pragma unroll
                for (int t = 0; t < tiles; t++) {
                    const int until = (row0 + min(t*16 + 15, n_rows - 1))/G;
                    for (int i = (row0 + t*16)/G; i <= until; i++) {
                        const uint32_t low = position[t][0] == a.first + i ? 0xffffffff : 0, high = position[t][1] == a.first + i ? 0xffffffff : 0;
                        const uint32_t of[4] = {r[t][0] & low, r[t][1] & high, r[t][2] & low, r[t][3] & high};
#pragma unroll
                        for (int y = 0; y < cols; y += 2) {
                            const int row = base + i - 8*y;
                            uint32_t f[4];
                            load_tiles(f, proj_at + row*32 + (half ^ row/4%2)*16);
                            multiply(s[t][y],     of, f[0], f[1]);
                            multiply(s[t][y + 1], of, f[2], f[3]);
                        }
                    }
                }
            }
            if (!(last <= from && to - p < a.window && last < end && n_rows == rows)) {
#pragma unroll
                for (int t = 0; t < tiles; t++) {
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        // What the row sees, from the lane's first key on.
                        const int high = min(position[t][e], end - 1) - p - lane%4*2, low = max(position[t][e], 0) - a.window - p - lane%4*2;
#pragma unroll
                        for (int y = 0; y < cols; y++) {
#pragma unroll
                            for (int x = 0; x < 2; x++) {
                                s[t][y][2*e + x] = 8*y + x <= high && 8*y + x > low ? s[t][y][2*e + x] : -INFINITY;
                            }
                        }
                    }
                }
            }
            float high[tiles][2];
            bool exceeds = false;
#pragma unroll
            for (int t = 0; t < tiles; t++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    high[t][e] = fmaxf(s[t][0][2*e], s[t][0][2*e + 1]);
#pragma unroll
                    for (int y = 1; y < cols; y++) {
                        high[t][e] = fmaxf(high[t][e], fmaxf(s[t][y][2*e], s[t][y][2*e + 1]));
                    }
                    exceeds |= high[t][e] > top[t][e] + slack;
                }
            }
            if (__any_sync(0xffffffff, exceeds)) {
#pragma unroll
                for (int t = 0; t < tiles; t++) {
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        high[t][e] = fmaxf(high[t][e], __shfl_xor_sync(0xffffffff, high[t][e], 1));
                        high[t][e] = fmaxf(high[t][e], __shfl_xor_sync(0xffffffff, high[t][e], 2));
                        high[t][e] = fmaxf(high[t][e], top[t][e]);
                        const float shrink = exp2f(top[t][e] - high[t][e]); // 0 at first
                        top[t][e] = high[t][e];
                        sum[t][e] *= shrink;
#pragma unroll
                        for (int x = 0; x < 2*steps; x++) {
                            o[t][x][2*e]     *= shrink;
                            o[t][x][2*e + 1] *= shrink;
                        }
                    }
                }
            }
            const unsigned v_at = tile::fragment(at + tile::bytes, 0, key, lane);
#pragma unroll
            for (int y = 0; y < cols; y += 2) {
                uint32_t w[tiles][4];
#pragma unroll
                for (int t = 0; t < tiles; t++) {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        float x = exp2f(s[t][y + e/2][e%2*2] - top[t][e%2]), z = exp2f(s[t][y + e/2][e%2*2 + 1] - top[t][e%2]);
                        sum[t][e%2] += x + z;
                        w[t][e] = packed(x, z);
                    }
                }
#pragma unroll
                for (int x = 0; x < steps; x++) {
                    uint32_t f[4];
                    load_tiles_transposed(f, (v_at + y*8*head_dim*2) ^ 32*x);
#pragma unroll
                    for (int t = 0; t < tiles; t++) {
                        multiply(o[t][2*x],     w[t], f[0], f[1]);
                        multiply(o[t][2*x + 1], w[t], f[2], f[3]);
                    }
                }
            }
        }
    }

    const int64_t part = int64_t(blockIdx.z)*a.n;
#pragma unroll
    for (int t = 0; t < tiles; t++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float all = sum[t][e];
            all += __shfl_xor_sync(0xffffffff, all, 1);
            all += __shfl_xor_sync(0xffffffff, all, 2);
            const int row = t*16 + lane/4 + 8*e;
            if (row >= n_rows) {
                continue;
            }
            const int64_t to = (row0 + row)/G*int64_t(a.n_head) + head_kv*G + (row0 + row)%G;
            const bool shared_out = gridDim.z > 1;
            float * const out = (shared_out ? a.parts + (part*a.n_head + to)*head_dim : a.out + to*head_dim) + lane%4*2;
            const float scale = shared_out ? 1 : all > 0 ? 1/all : 0;
#pragma unroll
            for (int x = 0; x < 2*steps; x++) {
                *(float2 *) (out + 8*x) = {o[t][x][2*e]*scale, o[t][x][2*e + 1]*scale};
            }
            if (shared_out && lane%4 == 0) {
                a.sums[part*a.n_head + to] = {top[t][e], all};
            }
        }
    }
#endif
}

// Adds up what the blocks of band_prefill left that shared keys.
//
//	parts: [head_dim, rows, splits]
//	sums:  [rows, splits]
//	out:   [head_dim, rows]
//
// grid: rows over those of a block, 128 threads
template <int head_dim>
static __global__ void __launch_bounds__(128) band_merge(const float * parts, const float2 * sums, float * out, int rows, int splits) {
    constexpr int quads = head_dim/4;
    const int row = blockIdx.x*(128/quads) + threadIdx.x/quads, d = threadIdx.x%quads*4;
    if (row >= rows) {
        return;
    }
    merged m;
    for (int x = 0; x < splits; x++) {
        m.highest(sums[int64_t(x)*rows + row].x);
    }
    for (int x = 0; x < splits; x++) {
        const int64_t at = int64_t(x)*rows + row;
        m.add(sums[at], *(const float4 *) (parts + at*head_dim + d));
    }
    const float s = m.sum > 0 ? 1/m.sum : 0;
    *(float4 *) (out + int64_t(row)*head_dim + d) = {m.o.x*s, m.o.y*s, m.o.z*s, m.o.w*s};
}

} // namespace inkling
