// Products of quantised weights with many rows on tensor cores, where rows choose experts:
// up to 64 rows of one expert are a tile. Each warp of a block has its own rows of
// weights, which it decodes once for all columns of the tile.
#pragma once

#include "matrixweights.cuh"
#include "mma16.cuh"
#include "wgmma.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

namespace inkling {

constexpr int TILE_COLUMNS = 64;
constexpr int TILE_WARPS   = 16; // of a block, at most
constexpr int TILE_DEPTH   = 256; // weights of a row that are in shared memory at a time

// A tile of x in shared memory. For wgmma.cuh 64 values of all columns are together; else a column's
// are, and neighbours lie half of all banks apart, since 4 lanes read 64 bytes each of two columns at once.
constexpr int TILE_PITCH = TILE_DEPTH*2 + 64;
constexpr int TILE_X     = TILE_COLUMNS*TILE_PITCH;
constexpr int TILE_ALIGN = 1024;

static_assert(TILE_X % TILE_ALIGN == 0, "the second stage too");

// Where 8 values of a column are, from a multiple of 8 on.
static __device__ __forceinline__ int tile_chunk(const int column, const int chunk) {
#ifdef INKLING_WGMMA
    return chunk/8*TILE_COLUMNS*128 + column*128 + ((chunk ^ column) & 7)*16;
#else
    return column*TILE_PITCH + chunk*16;
#endif
}

// The values of a column that lane q of 4 multiplies in group g: of the two fragments one behind the other.
static __device__ __forceinline__ uint4 tile_fragments(const uint8_t * x, const int column, const int g, const int q) {
#ifdef INKLING_WGMMA
    const auto word = [&](const int i) { return *(const uint32_t *) (x + tile_chunk(column, 4*g + i) + 4*q); };
    return make_uint4(word(0), word(1), word(2), word(3));
#else
    return *(const uint4 *) (x + tile_chunk(column, 4*g + q));
#endif
}

// Where value i of a row of x is: of a group of 32 lane q of 4 multiplies 8q to 8q+7, which stand in
// the order of two fragments if wgmma.cuh reads them. Two neighbours stay so.
static __device__ __forceinline__ int tile_value(const int i) {
#ifdef INKLING_WGMMA
    return (i & ~31) + (i & 4)*4 + (i & 2)*4 + (i & 24)/4 + (i & 1);
#else
    return i;
#endif
}

static_assert(TILE_DEPTH/8 == WARP_SIZE, "a warp copies a column");

// A tile: columns first to first+count of an order, of one expert.
struct matrix_tile {
    int32_t expert, first, count, unused;
};

struct matrix_args {
    const uint8_t * w, * up;  // banks; up in pairs only
    int64_t expert_bytes;
    int     row_bytes, rows, k; // rows a multiple of 32
    const half  * x;          // [k, ...], rows scaled
    const float * x_scale;    // what a row is to be multiplied by
    int     x_of;             // column p of the order is row p/x_of of x
    const int32_t * tiles_n;
    int32_t * next;           // pair of a tile and rows that no block has taken yet, 0 at first
    const matrix_tile * tiles;
    const int32_t * order;    // row·slots + slot
    const float * weights;    // [slots, n], or null
    int     weights_stride, slots;
    float * dst;              // [rows, ...], row p for column p
};

// Of type in shared memory: chunks of 16 bytes that hold 256 weights wherever they begin, an
// odd number of them from row to row, so that 8 rows are in different banks.
template <ggml_type type> struct matrix_stage {
    static constexpr int bytes  = matrix_type<type>::bytes;
    static constexpr int step   = bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : 2; // where they can begin
    static constexpr int chunks = (bytes + 16 - step + 15)/16;
    static constexpr int pitch  = (chunks | 1)*16;

    static constexpr int shared(int warps) {
        return TILE_ALIGN + matrix_type<type>::table + 2*(TILE_X + rows(warps));
    }

    static constexpr __host__ __device__ int rows(int warps) { return warps*32*pitch + 16; } // reads of whole words end behind the last
};

// Bytes of shared memory that a block has at most, of all chips that are known.
constexpr size_t MOST_SHARED = 227*1024;

// Warps of a block of a type on a chip with so many bytes for it; 0: no kernel.
template <ggml_type type> static constexpr int matrix_warps(size_t shared) {
    constexpr size_t others = 2048; // columns, what CUDA keeps
    for (int warps = TILE_WARPS; warps >= 4; warps -= 4) {
        if (size_t(matrix_stage<type>::shared(warps)) + others <= shared) {
            return warps;
        }
    }
    return 0;
}

// What the threads of a block share beside the stages.
struct matrix_columns {
    int    column[TILE_COLUMNS];
    float  factor[TILE_COLUMNS];
    const half * source[TILE_COLUMNS]; // null behind the last
    int    taken[2];
};

// The results of a warp's rows. Of pairs rows of gate and up meet here.
template <bool pairs, int most>
static __device__ __forceinline__ void tile_write(const matrix_args & a, const matrix_tile & tile, const matrix_columns & columns, const int row0, const float (&acc)[2][most][4]) {
    const int r = threadIdx.x % WARP_SIZE/4, q = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < most; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int c = 8*n + 2*q + i % 2;
            if (c >= tile.count) {
                continue;
            }
            float * const to = a.dst + int64_t(columns.column[c])*a.rows + row0 + r + i/2*8;
            const float factor = columns.factor[c];
            if (pairs) {
                const float gate = acc[0][n][i]*factor;
                to[0] = gate/(1.0f + expf(-gate))*(acc[1][n][i]*factor);
            } else {
                to[0]  = acc[0][n][i]*factor;
                to[16] = acc[1][n][i]*factor;
            }
        }
    }
}

// The products of a tile whose columns are the first most times 8, of which active times 8
// are there. row0 is the warp's first row of weights.
template <ggml_type type, bool pairs, int most>
static __device__ __forceinline__ void tile_products(const matrix_args & a, const matrix_tile & tile, const matrix_columns & columns,
    const int row0, const int active, uint8_t * const x_at, uint8_t * const w_at, const uint8_t * const table) {
    using stage = matrix_stage<type>;
    constexpr int warp_rows = pairs ? 16 : 32, together = most <= 2 ? 4 : 2; // groups that are under way at once
    const int warps = blockDim.x/WARP_SIZE, warp = threadIdx.x/WARP_SIZE, lane = threadIdx.x % WARP_SIZE;
    const int r = lane/4, q = lane % 4, stages = a.k/TILE_DEPTH, w_stage = stage::rows(warps);

    // A warp without rows does what the last one does, and writes nothing.
    const int64_t at = tile.expert*a.expert_bytes + int64_t(min(row0, a.rows - warp_rows))*a.row_bytes;
    const uint8_t * const w = a.w + at, * const up = pairs ? a.up + at : nullptr;
    const uint8_t * row[4]; // of the lane's four rows, 8 apart
    int before[4];          // bytes from a multiple of 16 to the row
#pragma unroll
    for (int i = 0; i < 4; i++) {
        row[i]    = (pairs && i >= 2 ? up : w) + (r + 8*(pairs ? i % 2 : i))*a.row_bytes;
        before[i] = stage::step == 16 ? 0 : int(uintptr_t(row[i]) & 15);
    }
    const auto offset = [&](const int i, const int s) { return stage::step == 16 ? 0 : (before[i] + s*stage::bytes) & 15; };
    const auto fetch = [&](const int s) {
        uint8_t * const to = w_at + (s & 1)*w_stage + r*stage::pitch + 16*q;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int skip = offset(i, s);
            const uint8_t * const from = row[i] + (s*stage::bytes - skip) + 16*q;
#pragma unroll
            for (int c = 0; c < stage::chunks; c += 4) {
                if (16*(c + q) < skip + stage::bytes) {
                    copy16(to + 8*i*stage::pitch + 16*c, from + 16*c, true);
                }
            }
        }
        uint8_t * const x_to = x_at + (s & 1)*TILE_X;
        for (int c = warp; c < 8*active; c += warps) {
            const half * const from = columns.source[c];
            copy16(x_to + tile_chunk(c, lane), from != nullptr ? from + s*TILE_DEPTH + 8*lane : a.x, from != nullptr);
        }
        copy_commit();
    };

    float acc[2][most][4] = {}; // of two times 16 rows of weights and 8 columns each
    fetch(0);
    for (int s = 0; s < stages; s++) {
        copy_wait<0>();
#ifdef INKLING_WGMMA
        async_copied();
#endif
        __syncthreads(); // the stage is there, and all are done with the one before
        if (s + 1 < stages) {
            fetch(s + 1);
        }
        const uint8_t * rows[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            rows[i] = w_at + (s & 1)*w_stage + (r + 8*i)*stage::pitch + offset(i, s);
        }
        typename matrix_type<type>::kept kept[4];
        const auto open = [&](const int g) {
            if (g % matrix_type<type>::span == 0) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    matrix_type<type>::open(kept[i], rows[i], g);
                }
            }
        };
        const uint8_t * const x = x_at + (s & 1)*TILE_X;
#ifdef INKLING_WGMMA
        if constexpr (most > 2) { // products of fewer columns are too short to wait for three other warps
            const uint64_t matrix = async_matrix(x);
            weights8 w[2][4]; // rows 8 apart, of the group that is multiplied and of the next
#pragma unroll
            for (int g = 0; g < TILE_DEPTH/32; g++) {
                auto & v = w[g % 2];
                open(g);
                if (g >= 2) {
                    async_wait<1>();
                }
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    matrix_type<type>::read(v[i], kept[i], rows[i], g, q, table);
                }
                const uint64_t b = matrix + (g/2*TILE_COLUMNS*128 + g % 2*64)/16;
                async_begin();
                multiply_async(acc[0], v[0][0], v[1][0], v[0][1], v[1][1], b);
                multiply_async(acc[1], v[2][0], v[3][0], v[2][1], v[3][1], b);
                multiply_async(acc[0], v[0][2], v[1][2], v[0][3], v[1][3], b + 2);
                multiply_async(acc[1], v[2][2], v[3][2], v[2][3], v[3][3], b + 2);
                async_commit();
            }
            async_wait<0>();
            async_done(acc);
            continue;
        }
#endif
#pragma unroll together
        for (int g = 0; g < TILE_DEPTH/32; g++) {
            weights8 w[4]; // 8 rows apart
            open(g);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                matrix_type<type>::read(w[i], kept[i], rows[i], g, q, table);
            }
#pragma unroll
            for (int n = 0; n < most; n++) {
                if (2*n < most || n < active) {
                    const uint4 b = tile_fragments(x, 8*n + r, g, q);
                    multiply(acc[0][n], {w[0][0], w[1][0], w[0][1], w[1][1]}, b.x, b.y);
                    multiply(acc[1][n], {w[2][0], w[3][0], w[2][1], w[3][1]}, b.x, b.y);
                    multiply(acc[0][n], {w[0][2], w[1][2], w[0][3], w[1][3]}, b.z, b.w);
                    multiply(acc[1][n], {w[2][2], w[3][2], w[2][3], w[3][3]}, b.z, b.w);
                }
            }
        }
    }

    if (row0 < a.rows) {
        tile_write<pairs, most>(a, tile, columns, row0, acc);
    }
}

// y = W x for the columns of all tiles; of pairs silu(gate x)·up x. Blocks take pairs of a
// tile and 32 rows of weights for each warp: of pairs 16 of either.
template <ggml_type type, bool pairs>
static __global__ void __launch_bounds__(matrix_warps<type>(MOST_SHARED)*WARP_SIZE, 1) matrix_kernel(const __grid_constant__ matrix_args a) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    using stage = matrix_stage<type>;
    extern __shared__ __align__(128) uint8_t shared[];
    __shared__ matrix_columns columns;
    const int warps = blockDim.x/WARP_SIZE, warp = threadIdx.x/WARP_SIZE, warp_rows = pairs ? 16 : 32;
    uint8_t * const x_at = shared + matrix_type<type>::table + (-shared_address(shared) & (TILE_ALIGN - 1));
    uint8_t * const w_at = x_at + 2*TILE_X + warp*32*stage::pitch; // the warp's; the second stage is all warps' behind
    const uint8_t * const table = shared + threadIdx.x % 16*8;
    if (matrix_type<type>::table > 0) {
        fill_magnitudes(shared);
    }
    const int tiles = *a.tiles_n, items = tiles*((a.rows + warps*warp_rows - 1)/(warps*warp_rows));

    // Tiles have 1 to 64 columns: a block takes the next when it is done.
    const auto take = [&](const int turn) {
        if (threadIdx.x == 0) {
            columns.taken[turn & 1] = atomicAdd(a.next, 1);
        }
    };
    take(0);
    for (int turn = 0;; turn++) {
        __syncthreads(); // all are done with the tile before
        const int item = columns.taken[turn & 1];
        if (item >= items) {
            break;
        }
        take(turn + 1);
        const matrix_tile tile = a.tiles[item % tiles];
        for (int c = threadIdx.x; c < TILE_COLUMNS; c += blockDim.x) {
            float f = 0.0f;
            const half * from = nullptr;
            int p = 0;
            if (c < tile.count) {
                p = a.order[tile.first + c];
                const int of = p/a.x_of;
                from = a.x + int64_t(of)*a.k;
                f = a.x_scale[of];
                if (a.weights != nullptr) {
                    f *= a.weights[int64_t(p/a.slots)*a.weights_stride + p % a.slots];
                }
            }
            columns.column[c] = p;
            columns.source[c] = from;
            columns.factor[c] = f;
        }
        __syncthreads();
        const int row0 = (item/tiles*warps + warp)*warp_rows, active = (tile.count + 7)/8;
        if (active <= 2) {
            tile_products<type, pairs, 2>(a, tile, columns, row0, active, x_at, w_at, table);
        } else if (active <= 4) {
            tile_products<type, pairs, 4>(a, tile, columns, row0, active, x_at, w_at, table);
        } else {
            tile_products<type, pairs, 8>(a, tile, columns, row0, active, x_at, w_at, table);
        }
    }
#else
    GGML_UNUSED(a);
    NO_DEVICE_CODE;
#endif
}

template <ggml_type type, bool pairs>
static void matrix_launch_type(const matrix_args & a, int sms, size_t shared, cudaStream_t stream) {
    const int rows  = pairs ? 16 : 32;
    const int most  = matrix_warps<type>(std::min(shared, MOST_SHARED));
    const int warps = std::min(most, (a.rows + 4*rows - 1)/(4*rows)*4); // fours, for wgmma.cuh
    CUDA_SET_SHARED_MEMORY_LIMIT((matrix_kernel<type, pairs>), matrix_stage<type>::shared(most));
    matrix_kernel<type, pairs><<<sms, warps*WARP_SIZE, matrix_stage<type>::shared(warps), stream>>>(a);
    CUDA_CHECK(cudaGetLastError());
}

static inline int matrix_warps_of(ggml_type type, size_t shared) {
    switch (type) {
#define INKLING_CASE(t) case t: return matrix_warps<t>(shared);
        INKLING_MATRIX_TYPES(INKLING_CASE)
#undef INKLING_CASE
        default: return 0;
    }
}

template <bool pairs>
static void matrix_launch(ggml_type type, const matrix_args & a, int sms, size_t shared, cudaStream_t stream) {
    switch (type) {
#define INKLING_CASE(t) case t: matrix_launch_type<t, pairs>(a, sms, shared, stream); break;
        INKLING_MATRIX_TYPES(INKLING_CASE)
#undef INKLING_CASE
        default: GGML_ABORT("no kernel for %s", ggml_type_name(type));
    }
}

} // namespace inkling

#endif
