// Rows of quantised weights times a few vectors. A warp reads two rows at a time, in
// pieces of 32*G groups of 32 weights; pieces come through a ring in shared memory
// that copies of 16 bytes fill ahead, because that alone keeps enough bytes under
// way. The vectors are rounded to 8 bits by every block for itself: a launch for that
// would take longer.
#pragma once

#include "launch.cuh"
#include "productsgroups.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

constexpr int INKLING_MAX_WARPS = 16;

// Vectors rounded to 8 bits, in shared memory. Group lane*G + j of a piece stands at
// place j*32 + lane, in two planes of 16 bytes a group, for reads without bank
// conflicts.
struct inkling_vectors {
    int4 * low;   // [column][place] elements 0 to 15
    int4 * high;
    int2 * scale; // the bits of the step; the sums of both halves, 16 bits each
    int    places; // of a column

    static __host__ __device__ int bytes(int places, int columns) { return 40*places*columns; }

    __device__ inkling_vectors(uint8_t * at, int places, int columns)
        : low((int4 *) at), high(low + places*columns), scale((int2 *) (high + places*columns)), places(places) {}
};

// Rounds columns [k, n] of x; 8 lanes a group. Needs a __syncthreads behind it.
template <int G>
static __device__ __forceinline__ void inkling_round(const inkling_vectors & y, const float * __restrict__ x, const int k, const int n) {
    const int lane = threadIdx.x % 8;
    const int groups = k/32;
    for (int i = threadIdx.x/8; i < (groups*n + 3)/4*4; i += blockDim.x/8) { // warps stay together
        const bool is = i < groups*n;
        const float4 v = is ? ((const float4 *) x)[8*i + lane] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float top = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
#pragma unroll
        for (int step = 4; step > 0; step /= 2) {
            top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFF, top, step));
        }
        const float d = top/127.0f;
        const float inverse = d > 0.0f ? 1.0f/d : 0.0f;
        const int a = __float2int_rn(v.x*inverse), b = __float2int_rn(v.y*inverse);
        const int c = __float2int_rn(v.z*inverse), e = __float2int_rn(v.w*inverse);
        int sum = a + b + c + e;
        sum += __shfl_xor_sync(0xFFFFFFFF, sum, 1);
        sum += __shfl_xor_sync(0xFFFFFFFF, sum, 2);
        const int other = __shfl_xor_sync(0xFFFFFFFF, sum, 4);
        if (!is) {
            continue;
        }
        const int column = i/groups, group = i % groups, within = group % (32*G);
        const int place = column*y.places + group - within + within % G*32 + within/G;
        const int word = (a & 255) | (b & 255) << 8 | (c & 255) << 16 | e << 24;
        int4 * plane = lane < 4 ? y.low : y.high;
        ((int *) (plane + place))[lane % 4] = word;
        if (lane == 0) {
            y.scale[place] = make_int2(__float_as_int(d), (sum & 0xFFFF) | other << 16);
        }
    }
}

// A lane's groups of a column.
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

// Where a lane's operands are: in registers, for one column and one piece...
template <int G>
struct inkling_held {
    inkling_operand x[G];
    __device__ __forceinline__ void take(const inkling_vectors & y, const int column) {
#pragma unroll
        for (int j = 0; j < G; j++) {
            inkling_load(x[j], y, column*y.places + 32*j + threadIdx.x % WARP_SIZE);
        }
    }
    __device__ __forceinline__ const inkling_operand & get(const int j, const int, const int) const { return x[j]; }
};

// ...or in shared memory.
template <int G>
struct inkling_shared {
    const inkling_vectors y;
    __device__ __forceinline__ inkling_operand get(const int j, const int column, const int piece) const {
        inkling_operand x;
        inkling_load(x, y, column*y.places + (piece*G + j)*32 + threadIdx.x % WARP_SIZE);
        return x;
    }
};

// The same groups of two rows, which lie at a and b.
template <ggml_type type, int G, int N, typename X>
static __device__ __forceinline__ void inkling_pieces_of(float (&acc)[2][N], const uint8_t * a, const uint8_t * b, const uint8_t * table, const X & x, const int index) {
    using T = inkling_type<type>;
    constexpr bool later = T::negs && N == 1; // another dp4a is less than negating, once
#pragma unroll
    for (int j = 0; j < G; j++) {
        const int group = threadIdx.x % WARP_SIZE*G + j;
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
            const inkling_operand & o = x.get(j, c, index);
            acc[0][c] += inkling_dot<type, later>(w[0], o);
            acc[1][c] += inkling_dot<type, later>(w[1], o);
        }
    }
}

// Adds pieces of groups groups, a multiple of G, times N columns to acc.
template <int G, int N, typename X>
static __device__ __forceinline__ void inkling_pieces(float (&acc)[2][N], const int kind, const uint8_t * a, const uint8_t * b, const int groups, const uint8_t * table, const X & x, const int index) {
    if (int(threadIdx.x % WARP_SIZE)*G >= groups) {
        return;
    }
    switch (kind) { // the same for the whole warp
#define INKLING_CASE(t) case INKLING_KIND_##t: inkling_pieces_of<t, G>(acc, a, b, table, x, index); break;
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
    const uint32_t at = uint32_t(__cvta_generic_to_shared(to));
    for (; b + 3*step < bytes; b += 4*step) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" :: "r"(at + b + i*step), "l"(from + b + i*step) : "memory");
        }
    }
#pragma unroll
    for (int i = 0; i < 3; i++) {
        if (b + i*step < bytes) {
            asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" :: "r"(at + b + i*step), "l"(from + b + i*step) : "memory");
        }
    }
}

static __device__ __forceinline__ void inkling_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

constexpr int INKLING_MAX_STAGES = 6;

// A warp's ring of slots, each for pieces of two rows, the second at half of the slot.
struct inkling_ring_of_rows {
    uint8_t * slots;
    int slot_bytes, stages;
    int filled = 0, read = 0; // the slots that are next

    __device__ inkling_ring_of_rows(uint8_t * slots, int slot_bytes, int stages) : slots(slots), slot_bytes(slot_bytes), stages(stages) {}

    // Where the next copies go. One commit follows.
    __device__ __forceinline__ uint8_t * fill() {
        uint8_t * slot = slots + filled*slot_bytes;
        filled = filled + 1 == stages ? 0 : filled + 1;
        return slot;
    }

    // The oldest pieces, once they are there; of copies stages-1 were committed since.
    __device__ __forceinline__ const uint8_t * take() {
        switch (stages) { // cp.async.wait_group takes constants
            case 2:  asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
            case 3:  asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
            case 4:  asm volatile("cp.async.wait_group 3;" ::: "memory"); break;
            default: asm volatile("cp.async.wait_group 4;" ::: "memory"); break; // 5 and 6
        }
        __syncwarp(); // all lanes' copies
        const uint8_t * slot = slots + read*slot_bytes;
        read = read + 1 == stages ? 0 : read + 1;
        return slot;
    }
};

#endif
