// The kernel of attention with a few rows a sequence: attention.cuh says what it computes.
#pragma once

#include "attentioncells.cuh"
#include "cluster.cuh"
#include "launch.cuh"
#include "mma16.cuh"

namespace inkling {

// What a launch of band_decode works on. Strides of q and r are in floats, those of
// cells in bytes; ".1" of the head, ".2" of the row, ".3" of the sequence for q and r,
// of the cell, the head and the sequence for keys and values.
struct band_decode_args {
    const float *   q;       // [head_dim, n_head, n, n_seq]
    const float *   r;       // [d_rel, n_head, n, n_seq]
    const float *   proj;    // [d_rel, extent]
    const char *    k;       // [head_dim, cells, n_head_kv, n_seq]
    const char *    v;
    const int32_t * first;   // [n_seq]
    unsigned *      tickets; // [groups*n_head_kv, n_seq], zero; left zero
    float *         out;     // [head_dim, n_head, n, n_seq]
    float *         parts;   // [head_dim, rows, splits, groups*n_head_kv, n_seq]
    float2 *        sums;    // [rows, splits, groups*n_head_kv, n_seq]: highest score, sum

    int64_t q1, q2, q3, r1, r2, r3;
    int64_t k1, k2, k3, v1, v2, v3;

    int   n, n_head, n_head_kv, d_rel;
    int   extent;  // distances that have a bias
    int   window;  // distances that are seen; no_window without one
    int   ring;    // position p is in cell p mod ring; 0: in cell p
    int   cells;
    int   splits;  // blocks that share the keys of a sequence, at most
    bool  cluster; // these blocks are one; tickets, parts and sums are not used then
    float scale;   // of q·k
};

constexpr int max_cluster = 8; // blocks; more are not portable

// Bytes of a stage of a warp: keys, values, and 64 for each row of proj.
template <cell_type type, int head_dim, int tiles>
constexpr __host__ __device__ int band_decode_stage() {
    return 2*cell_tile<type, head_dim, 16>::bytes + (16 + 8*tiles)*64;
}

// Shared memory of a block.
template <cell_type type, int head_dim, int tiles, int warps, int stages>
constexpr int band_decode_shared() {
    const int q = tiles <= 2 ? 0 : tiles*(head_dim/16)*32*16;
    const int load = warps*stages*band_decode_stage<type, head_dim, tiles>() + q;
    const int merge = warps*tiles*8*((head_dim + 4)*4 + 8) + tiles*8*(head_dim*4 + 8);
    return load > merge ? load : merge;
}

// Attention of n rows a sequence. A block takes one kv head of one sequence, tiles*8
// of the n*G rows that read it (row = i*G + g, G query heads a kv head), and a run of
// positions. Each of its warps goes through every warps'th tile of 16 positions on its
// own, with a softmax of its own: nothing but copies is waited for. The blocks of a
// sequence's kv head add up what they found if they are a cluster; else the last one does.
//
// Scores are computed transposed, keys x rows: 8 rows are enough for a tile then. F32
// operands enter the products as two F16 values each, so that what is rounded is what
// the cache rounds.
//
// grid: splits, groups*n_head_kv, n_seq; groups = rows of a kv head over tiles*8
template <cell_type type, int head_dim, int tiles, int warps, int stages>
static __global__ void __launch_bounds__(32*warps, tiles == 4 ? 1 : 2) band_decode(const band_decode_args a) {
#if __CUDA_ARCH__ >= 800
    constexpr int rows   = 8*tiles;  // of the block
    constexpr int keys   = 16;       // of a warp's tile
    constexpr int steps  = head_dim/16;
    constexpr int planes = cell_planes(type);
    constexpr bool q_in_registers = tiles <= 2;
    constexpr float log2e = 1.44269504f;
    using tile = cell_tile<type, head_dim, keys>;

    extern __shared__ __align__(256) char shared[];

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int seq = blockIdx.z, head_kv = blockIdx.y % a.n_head_kv, group = blockIdx.y / a.n_head_kv;
    const int G = a.n_head/a.n_head_kv;
    const int row0 = group*rows, n_rows = min(rows, a.n*G - row0);

    // The positions that any row sees, and this block's part of them. What stands in
    // first is not trusted: graphs are timed with anything in their inputs.
    const int first = a.first[seq];
    const bool idle = first < 0 || first > INT_MAX/2;
    const int last_position = a.ring > 0 ? INT_MAX : a.cells;
    const int end = idle ? 0 : min(first + a.n, last_position);
    const int begin = idle ? 0 : max(0, a.window == no_window ? 0 : first - a.window + 1);
    const int chunk = max((end - begin + a.splits - 1)/a.splits + keys*warps - 1, 0)/(keys*warps)*(keys*warps);
    const int used = end > begin ? (end - begin + chunk - 1)/chunk : 1; // blocks that have positions
    if (blockIdx.x >= used && !a.cluster) {
        inkling_wait(); inkling_release();
        return;
    }
    const int p0 = begin + blockIdx.x*chunk, p1 = min(p0 + chunk, end);

    // Shared memory: for each warp and stage a tile of keys, one of values and the rows of
    // proj that they meet, then q if it is not in registers; what the warps found, at the
    // end, where the tiles were.
    constexpr int stage_bytes = band_decode_stage<type, head_dim, tiles>();
    char * const mine = shared + warp*(stages*stage_bytes);
    const char * const k = a.k + seq*a.k3 + head_kv*a.k2;
    const char * const v = a.v + seq*a.v3 + head_kv*a.v2;
    const auto fetch = [&](int p, int stage) {
        if (p < p1) {
            char * const to = mine + stage*stage_bytes;
            const int cell = a.ring > 0 ? p % a.ring : p;
            tile::fetch_all(to,               k, a.k1, cell, a.ring, p1 - p, lane);
            tile::fetch_all(to + tile::bytes, v, a.v1, cell, a.ring, p1 - p, lane);
            // Rows of proj from the distance of row 0 to the last key on, 0 outside of the
            // band. Every other pair of rows has its halves exchanged, for the banks.
            const int lowest = first + row0/G - p - keys + 1;
            if (lowest < a.extent) {
                for (int x = lane; x < 4*(keys + (row0 + n_rows - 1)/G - row0/G); x += 32) {
                    const int row = x/4, c = x%4, distance = lowest + row;
                    const bool valid = distance >= 0 && distance < a.extent && 4*c < a.d_rel;
                    copy16(to + 2*tile::bytes + row*64 + (c ^ row/2%2*2)*16, a.proj + (valid ? int64_t(distance)*a.d_rel + 4*c : 0), valid);
                }
            }
        }
        copy_commit();
    };
    // Cells of earlier steps are there before the kernel that fills this step's is done.
    int fetched = 0;
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        if (const int p = p0 + (warp + s*warps)*keys; p + keys <= first) {
            fetch(p, s);
            fetched++;
        }
    }
    inkling_wait(); inkling_release();
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        if (s >= fetched) {
            fetch(p0 + (warp + s*warps)*keys, s);
        }
    }

    // Row (lane/4) of each tile of rows, of which this lane holds columns of q and r
    // as b fragments; out of which the products make rows 2(lane%4) and +1.
    uint32_t r_high[tiles][2], r_low[tiles][2];
    uint32_t q_high[q_in_registers ? tiles : 1][steps][2], q_low[q_in_registers ? tiles : 1][steps][2];
    uint4 * const q_shared = (uint4 *) (shared + warps*stages*stage_bytes); // [tiles][steps][32]
#pragma unroll
    for (int t = 0; t < tiles; t++) {
        const int row = t*8 + lane/4;
        const bool valid = row < n_rows && !idle;
        const int i = (row0 + row)/G, head = head_kv*G + (row0 + row)%G, c = lane%4*2;
        const float * const q = a.q + seq*a.q3 + i*a.q2 + head*a.q1;
        const float * const r = a.r + seq*a.r3 + i*a.r2 + head*a.r1;
        const float scale = a.scale*log2e;
#pragma unroll
        for (int s = 0; s < steps; s++) {
            const float2 none = {0, 0};
            const float2 x = valid ? *(const float2 *) (q + s*16 + c)     : none;
            const float2 y = valid ? *(const float2 *) (q + s*16 + c + 8) : none;
            uint4 f;
            split(x.x*scale, x.y*scale, f.x, f.z);
            split(y.x*scale, y.y*scale, f.y, f.w);
            if constexpr (q_in_registers) {
                q_high[t][s][0] = f.x, q_high[t][s][1] = f.y, q_low[t][s][0] = f.z, q_low[t][s][1] = f.w;
            } else if (warp == (t*steps + s) % warps) {
                q_shared[(t*steps + s)*32 + lane] = f;
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const bool has = valid && c + 8*h < a.d_rel;
            const float2 x = has ? *(const float2 *) (r + c + 8*h) : float2{0, 0};
            split(x.x*log2e, x.y*log2e, r_high[t][h], r_low[t][h]);
        }
    }
    if constexpr (!q_in_registers) {
        __syncthreads();
    }

    float o[steps][tiles][4] = {};
    float top[tiles][2], sum[tiles][2]; // of rows 2(lane%4) and +1; sum of this lane's keys alone
    int position[tiles][2];             // of those rows; those that do not exist see nothing
#pragma unroll
    for (int t = 0; t < tiles; t++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int row = t*8 + lane%4*2 + e;
            position[t][e] = row < n_rows ? first + (row0 + row)/G : -1;
            top[t][e] = -INFINITY;
            sum[t][e] = 0;
        }
    }

    int stage = 0;
    for (int p = p0 + warp*keys; p < p1; p += warps*keys) {
        fetch(p + (stages - 1)*warps*keys, stage == 0 ? stages - 1 : stage - 1);
        copy_wait<stages - 1>();
        __syncwarp();
        char * const at = mine + stage*stage_bytes;
        stage = stage == stages - 1 ? 0 : stage + 1;

        // Scores of 16 keys x 8 rows a tile, to the base 2.
        float s[tiles][4] = {}, s_low[tiles][4] = {};
#pragma unroll
        for (int x = 0; x < steps; x++) {
            uint32_t f[planes][4];
#pragma unroll
            for (int plane = 0; plane < planes; plane++) {
                load_tiles(f[plane], tile::fragment(at, plane, 0, lane) ^ 32*x);
            }
#pragma unroll
            for (int t = 0; t < tiles; t++) {
                uint4 q;
                if constexpr (q_in_registers) {
                    q = {q_high[t][x][0], q_high[t][x][1], q_low[t][x][0], q_low[t][x][1]};
                } else {
                    q = q_shared[(t*steps + x)*32 + lane];
                }
                multiply(s[t], f[0], q.x, q.y);
                multiply(s_low[t], f[0], q.z, q.w);
                if constexpr (planes == 2) {
                    multiply(s_low[t], f[1], q.x, q.y);
                }
            }
        }
        // The bias: proj at the distances of the 16 keys from row i, times the r of row i.
        if (first + row0/G - (p + keys - 1) < a.extent) {
#pragma unroll
            for (int t = 0; t < tiles; t++) {
                const int mine = (row0 + t*8 + lane/4)/G, to = (row0 + min(t*8 + 7, n_rows - 1))/G;
                for (int i = (row0 + t*8)/G; i <= to; i++) {
                    uint32_t high[4], low[4];
#pragma unroll
                    for (int x = 0; x < 4; x++) {
                        const int row = i - row0/G + keys - 1 - lane/4 - x%2*8, c = lane%4/2 + x/2*2;
                        const float2 w = *(const float2 *) (at + 2*tile::bytes + row*64 + (c ^ row/2%2*2)*16 + lane%2*8);
                        split(w.x, w.y, high[x], low[x]);
                    }
                    const uint32_t keep = mine == i ? 0xffffffff : 0;
                    multiply(s[t],     high, r_high[t][0] & keep, r_high[t][1] & keep);
                    multiply(s_low[t], high, r_low[t][0]  & keep, r_low[t][1]  & keep);
                    multiply(s_low[t], low,  r_high[t][0] & keep, r_high[t][1] & keep);
                }
            }
        }

        // Softmax over the keys seen so far.
        float shrink[tiles][2];
        uint32_t w_high[tiles][2], w_low[tiles][2];
        bool same = true;
#pragma unroll
        for (int t = 0; t < tiles; t++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int distance = position[t][e%2] - (p + lane/4 + e/2*8);
                s[t][e] = distance >= 0 && distance < a.window ? s[t][e] + s_low[t][e] : -INFINITY;
            }
            float w[4];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float high = fmaxf(s[t][e], s[t][e + 2]);
#pragma unroll
                for (int lanes = 4; lanes < 32; lanes *= 2) {
                    high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, lanes));
                }
                high = fmaxf(high, top[t][e]);
                const float base = high == -INFINITY ? 0 : high;
                shrink[t][e] = exp2f(top[t][e] - base);
                same &= high == top[t][e];
                top[t][e] = high;
                w[e]     = exp2f(s[t][e]     - base);
                w[e + 2] = exp2f(s[t][e + 2] - base);
                sum[t][e] = sum[t][e]*shrink[t][e] + w[e] + w[e + 2];
            }
#pragma unroll
            for (int h = 0; h < 2; h++) {
                split(w[2*h], w[2*h + 1], w_high[t][h], w_low[t][h]);
                w_high[t][h] = transposed_tile(w_high[t][h]);
                w_low[t][h]  = transposed_tile(w_low[t][h]);
            }
        }
        if (!__all_sync(0xffffffff, same)) {
#pragma unroll
            for (int x = 0; x < steps; x++) {
#pragma unroll
                for (int t = 0; t < tiles; t++) {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        o[x][t][e] *= shrink[t][e%2];
                    }
                }
            }
        }
#pragma unroll
        for (int x = 0; x < steps; x++) {
            uint32_t f[planes][4];
#pragma unroll
            for (int plane = 0; plane < planes; plane++) {
                load_tiles_transposed(f[plane], tile::fragment_transposed(at + tile::bytes, plane, 0, lane) ^ 32*x);
            }
#pragma unroll
            for (int t = 0; t < tiles; t++) {
                multiply(o[x][t], f[0], w_high[t][0], w_high[t][1]);
                multiply(o[x][t], f[0], w_low[t][0],  w_low[t][1]);
                if constexpr (planes == 2) {
                    multiply(o[x][t], f[1], w_high[t][0], w_high[t][1]);
                }
            }
        }
        __syncwarp(); // before the stage is written again
    }

    // The warps' results side by side, padded so that the lanes of a store meet all banks.
    copy_wait<0>();
    __syncthreads();
    constexpr int pitch = head_dim + 4;
    float * const o_shared = (float *) shared;                            // [warps][rows][pitch]
    float2 * const sum_shared = (float2 *) (o_shared + warps*rows*pitch); // [warps][rows]
#pragma unroll
    for (int t = 0; t < tiles; t++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float all = sum[t][e];
#pragma unroll
            for (int lanes = 4; lanes < 32; lanes *= 2) {
                all += __shfl_xor_sync(0xffffffff, all, lanes);
            }
            const int row = warp*rows + t*8 + lane%4*2 + e;
            if (lane < 4) {
                sum_shared[row] = {top[t][e], all};
            }
#pragma unroll
            for (int x = 0; x < steps; x++) {
                o_shared[row*pitch + x*16 + lane/4]     = o[x][t][e];
                o_shared[row*pitch + x*16 + lane/4 + 8] = o[x][t][e + 2];
            }
        }
    }
    __syncthreads();

    constexpr int quads = head_dim/4; // threads of a row
    constexpr int at_once = 32*warps/quads;
    const int64_t part = (int64_t(seq)*gridDim.y + blockIdx.y)*a.splits;
    const auto write = [&](int row, int d, const merged & m) {
        const int i = (row0 + row)/G, head = head_kv*G + (row0 + row)%G;
        const float s = m.sum > 0 ? 1/m.sum : 0;
        *(float4 *) (a.out + ((int64_t(seq)*a.n + i)*a.n_head + head)*head_dim + d) = {m.o.x*s, m.o.y*s, m.o.z*s, m.o.w*s};
    };
    const int d = threadIdx.x % quads * 4;
    const bool alone = used == 1 && !a.cluster;
    float4 * const o_part = (float4 *) (sum_shared + warps*rows); // [rows][quads]: the block's part, for its cluster
    float2 * const sum_part = (float2 *) (o_part + rows*quads);   // [rows]
    for (int row = threadIdx.x/quads; row < n_rows; row += at_once) {
        merged m;
#pragma unroll
        for (int w = 0; w < warps; w++) {
            m.highest(sum_shared[w*rows + row].x);
        }
#pragma unroll
        for (int w = 0; w < warps; w++) {
            m.add(sum_shared[w*rows + row], *(const float4 *) (o_shared + (w*rows + row)*pitch + d));
        }
        if (alone) {
            write(row, d, m);
            continue;
        }
        const int64_t to = (part + blockIdx.x)*rows + row;
        *(a.cluster ? o_part + row*quads + d/4 : (float4 *) (a.parts + to*head_dim + d)) = m.o;
        if (d == 0) {
            *(a.cluster ? sum_part + row : a.sums + to) = {m.top, m.sum};
        }
    }
    if (alone) {
        return;
    }
    if (a.cluster) { // each of its blocks adds up some of the values, out of the shared memory of all
        cluster_sync();
        const int share = 32*warps/a.splits;
        for (int x = blockIdx.x*share + threadIdx.x; threadIdx.x < share && x < n_rows*quads; x += 32*warps) {
            const int row = x/quads;
            merged m;
            float2 sums[max_cluster];
#pragma unroll
            for (int y = 0; y < max_cluster; y++) {
                sums[y] = y < a.splits ? cluster_load(sum_part + row, y) : float2{-INFINITY, 0};
                m.highest(sums[y].x);
            }
#pragma unroll
            for (int y = 0; y < max_cluster; y++) {
                if (y < a.splits) {
                    m.add(sums[y], cluster_load(o_part + x, y));
                }
            }
            write(row, x%quads*4, m);
        }
        cluster_sync(); // until then others read this block's
        return;
    }
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) { // the ticket of the last one is 0 again
        last = atomicInc(a.tickets + seq*gridDim.y + blockIdx.y, used - 1) == used - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    // The weights of the parts first, all of them read at once.
    float * const weight = (float *) shared; // [rows][used], then sums [rows]
    for (int row = warp; row < n_rows; row += warps) {
        float high = -INFINITY, all = 0;
        for (int x = lane; x < used; x += 32) {
            high = fmaxf(high, __ldcg(a.sums + (part + x)*rows + row).x);
        }
#pragma unroll
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, lanes));
        }
        for (int x = lane; x < used; x += 32) {
            const float2 one = __ldcg(a.sums + (part + x)*rows + row);
            const float w = one.x == -INFINITY ? 0 : exp2f(one.x - high);
            weight[row*used + x] = w;
            all += w*one.y;
        }
#pragma unroll
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            all += __shfl_xor_sync(0xffffffff, all, lanes);
        }
        if (lane == 0) {
            weight[rows*used + row] = all;
        }
    }
    __syncthreads();
    for (int row = threadIdx.x/quads; row < n_rows; row += at_once) {
        merged m;
        m.sum = weight[rows*used + row];
        const float * const from = a.parts + (part*rows + row)*head_dim + d;
#pragma unroll 8
        for (int x = 0; x < used; x++) {
            m.add(weight[row*used + x], __ldcg((const float4 *) (from + int64_t(x)*rows*head_dim)));
        }
        write(row, d, m);
    }
#endif
}

} // namespace inkling
