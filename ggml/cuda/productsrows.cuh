// Rows of quantised weights times a few vectors. A warp reads two rows at a time, in
// pieces of whole turns: in a turn each lane has two neighbouring groups of 32 weights
// of each row. Pieces come through two slots of shared memory, of which one is filled
// by copies of 16 bytes while the other is read: that alone keeps enough bytes under
// way. The vectors are rounded to 8 bits by every block for itself: a launch for that
// would take longer.
#pragma once

#include "cp-async.cuh"
#include "launch.cuh"
#include "productsgroups.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

constexpr int INKLING_MAX_WARPS = 16;

constexpr int INKLING_TURN = 2*WARP_SIZE; // groups

// Vectors rounded to 8 bits, in shared memory. Groups 2*lane and 2*lane+1 of a turn
// stand at places lane and 32+lane, in two planes of 16 bytes a group, for reads
// without bank conflicts.
struct inkling_vectors {
    int4 * low;    // [column][place] elements 0 to 15
    int4 * high;
    int2 * scale;  // the bits of the step; the sums of both halves, 16 bits each
    int    places; // of a column

    static __host__ __device__ int bytes(int places, int columns) { return 40*places*columns; }

    __device__ inkling_vectors(uint8_t * at, int places, int columns)
        : low((int4 *) at), high(low + places*columns), scale((int2 *) (high + places*columns)), places(places) {}
};

// Rounds columns [k, n] of x; 8 lanes a group. Needs a __syncthreads behind it.
static __device__ __forceinline__ void inkling_round(const inkling_vectors & y, const float * __restrict__ x, const int k, const int n) {
    constexpr int together = 8; // reads under way
    const int lane = threadIdx.x % 8, step = blockDim.x/8;
    const int groups = k/32, all = groups*n;
    for (int i0 = threadIdx.x/8; i0 < (all + 3)/4*4; i0 += together*step) { // warps stay together
        float4 v[together];
#pragma unroll
        for (int j = 0; j < together; j++) {
            const int i = i0 + j*step;
            v[j] = i < all ? ((const float4 *) x)[8*i + lane] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
#pragma unroll
        for (int j = 0; j < together; j++) {
            const int i = i0 + j*step;
            if (i - threadIdx.x/8 % 4 >= all) { // no group of this warp
                break;
            }
            float top = fmaxf(fmaxf(fabsf(v[j].x), fabsf(v[j].y)), fmaxf(fabsf(v[j].z), fabsf(v[j].w)));
#pragma unroll
            for (int other = 4; other > 0; other /= 2) {
                top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFF, top, other));
            }
            const float d = top/127.0f;
            const float inverse = d > 0.0f ? 1.0f/d : 0.0f;
            const int a = __float2int_rn(v[j].x*inverse), b = __float2int_rn(v[j].y*inverse);
            const int c = __float2int_rn(v[j].z*inverse), e = __float2int_rn(v[j].w*inverse);
            int sum = a + b + c + e;
            sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
            sum += __shfl_xor_sync(0xFFFFFFFF, sum, 2);
            const int other = __shfl_xor_sync(0xFFFFFFFF, sum, 4);
            if (i >= all) {
                continue;
            }
            const int column = i/groups, group = i - column*groups, within = group % INKLING_TURN;
            const int place = column*y.places + group - within + within % 2*WARP_SIZE + within/2;
            const int word = (a & 255) | (b & 255) << 8 | (c & 255) << 16 | e << 24;
            int4 * plane = lane < 4 ? y.low : y.high;
            ((int *) (plane + place))[lane % 4] = word;
            if (lane == 0) {
                y.scale[place] = make_int2(__float_as_int(d), (sum & 0xFFFF) | other << 16);
            }
        }
    }
}

// A lane's group of a column.
struct inkling_operand {
    int   u[8];
    float d;
    int   sums;
};

static __device__ __forceinline__ void inkling_load(inkling_operand & x, const inkling_vectors & y, const int place) {
    const int4 a = y.low[place], b = y.high[place];
    const int2 s = y.scale[place];
    x.u[0] = a.x; x.u[1] = a.y; x.u[2] = a.z; x.u[3] = a.w;
    x.u[4] = b.x; x.u[5] = b.y; x.u[6] = b.z; x.u[7] = b.w;
    x.d = __int_as_float(s.x);
    x.sums = s.y;
}

// negs: w.v of a type that has them is not made negative yet.
template <ggml_type type, bool negs>
static __device__ __forceinline__ float inkling_dot(const inkling_group & w, const inkling_operand & x) {
    using T = inkling_type<type>;
    int a = 0, b = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        a = __dp4a(w.v[i],     x.u[i],     a);
        b = __dp4a(w.v[4 + i], x.u[4 + i], b);
    }
    if constexpr (negs) { // ~v is -v - 1
        int c = 0, e = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            c = __dp4a(w.neg[i],     x.u[i],     c);
            e = __dp4a(w.neg[4 + i], x.u[4 + i], e);
        }
        a -= c;
        b -= e;
    }
    const int sa = int16_t(x.sums), sb = x.sums >> 16;
    float r;
    if constexpr (T::halves) {
        r = w.d0*float(a - T::offset*sa) + w.d1*float(b - T::offset*sb);
    } else {
        a += b;
        if constexpr (T::offset != 0) {
            a -= T::offset*(sa + sb);
        }
        r = w.d0*float(a);
    }
    if constexpr (T::mins) {
        r -= w.m*float(sa + sb);
    }
    return x.d*r;
}

// Adds pieces of two rows, which lie at a and b, times N columns to acc. The columns'
// groups of the piece begin at place.
template <ggml_type type, int N>
static __device__ __forceinline__ void inkling_pieces_of(float (&acc)[2][N], const uint8_t * a, const uint8_t * b, const int groups, const uint8_t * table, const inkling_vectors & y, int place) {
    using T = inkling_type<type>;
    constexpr bool later = T::negs && N == 1; // another dp4a is less than negating, once
    place += threadIdx.x % WARP_SIZE;
#pragma unroll 1 // the code of a turn is long enough for the cache of instructions
    for (int first = 2*(threadIdx.x % WARP_SIZE); first < groups; first += INKLING_TURN, place += INKLING_TURN) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int group = first + j;
            inkling_group w[2];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                T::read(w[r], (r == 0 ? a : b) + group/T::groups*T::bytes, group % T::groups, table);
                if constexpr (T::negs && !later) {
#pragma unroll
                    for (int i = 0; i < 8; i++) {
                        w[r].v[i] += w[r].neg[i] & 0x01010101; // no carry: no magnitude is 0
                    }
                }
            }
#pragma unroll
            for (int c = 0; c < N; c++) {
                inkling_operand x;
                inkling_load(x, y, c*y.places + j*WARP_SIZE + place);
                acc[0][c] += inkling_dot<type, later>(w[0], x);
                acc[1][c] += inkling_dot<type, later>(w[1], x);
            }
        }
    }
}

// The same for any type. groups is even.
template <int N>
static __device__ __forceinline__ void inkling_pieces(float (&acc)[2][N], const int kind, const uint8_t * a, const uint8_t * b, const int groups, const uint8_t * table, const inkling_vectors & y, const int place) {
    switch (kind) { // the same for the whole warp
#define INKLING_CASE(t) case INKLING_KIND_##t: inkling_pieces_of<t>(acc, a, b, groups, table, y, place); break;
        INKLING_QUANTISED_TYPES(INKLING_CASE)
#undef INKLING_CASE
    }
}

// Sums of both rows over the warp: lanes 0 to 15 get the first row's, the others the second's.
static __device__ __forceinline__ float inkling_sums(const float a, const float b) {
    const bool upper = threadIdx.x % WARP_SIZE >= WARP_SIZE/2;
    float sum = (upper ? b : a) + __shfl_xor_sync(0xFFFFFFFF, upper ? a : b, WARP_SIZE/2);
#pragma unroll
    for (int step = WARP_SIZE/4; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xFFFFFFFF, sum, step);
    }
    return sum;
}

// Starts a warp's copy of bytes, a multiple of 16.
static __device__ __forceinline__ void inkling_copy(uint8_t * to, const uint8_t * from, const int bytes) {
    constexpr int step = 16*WARP_SIZE;
    int b = 16*(threadIdx.x % WARP_SIZE);
    const unsigned int at = ggml_cuda_cvta_generic_to_shared(to);
    for (; b + 3*step < bytes; b += 4*step) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            cp_async_cg_16<256>(at + b + i*step, from + b + i*step);
        }
    }
#pragma unroll
    for (int i = 0; i < 3; i++) {
        if (b + i*step < bytes) {
            cp_async_cg_16<256>(at + b + i*step, from + b + i*step);
        }
    }
}

// What a thread started belongs together.
static __device__ __forceinline__ void inkling_commit() {
#ifdef CP_ASYNC_AVAILABLE
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// A warp's two slots, each for pieces of two rows, the second at half of the slot.
struct inkling_slots {
    uint8_t * at;
    int bytes;
    bool filled = false, read = false; // which is next

    __device__ inkling_slots(uint8_t * at, int bytes) : at(at), bytes(bytes) {}

    // Where the next copies go. One commit follows.
    __device__ __forceinline__ uint8_t * fill() {
        filled = !filled;
        return at + (filled ? 0 : bytes);
    }

    // The pieces that are older than the last commit.
    __device__ __forceinline__ const uint8_t * take() {
#ifdef CP_ASYNC_AVAILABLE
        asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
        __syncwarp(); // all lanes' copies
        read = !read;
        return at + (read ? 0 : bytes);
    }
};

#endif
