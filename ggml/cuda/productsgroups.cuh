// Weights of quantised types, 32 at a time, as signed bytes for dp4a: what is common
// to the products of few rows. Rows lie in shared memory, where a copy of 16 bytes at
// a time put them; blocks in them begin at any byte.
#pragma once

#include "fused.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

// 32 weights: v[i] are those of elements 4i to 4i+3. What they stand for is
//   d0*(v - offset) for elements 0 to 15, d1*(v - offset) for 16 to 31, minus m
// where the type has such; of IQ3_XXS v is a complement where neg is -1.
struct inkling_group {
    int   v[8];
    int   neg[8];
    float d0, d1, m;
};

// n words behind p, which need not be aligned. One word more is read.
template <int n>
static __device__ __forceinline__ void inkling_words(const uint8_t * p, int (&w)[n]) {
    const uint32_t odd = uint32_t(__cvta_generic_to_shared(p)) & 3;
    const int * q = (const int *) (p - odd);
    int word = q[0];
#pragma unroll
    for (int i = 0; i < n; i++) {
        const int next = q[i + 1];
        w[i] = __funnelshift_r(word, next, 8*odd);
        word = next;
    }
}

static __device__ __forceinline__ void inkling_quads(const uint8_t * p, int (&w)[8]) { // p: aligned to 16 bytes
    const int4 a = ((const int4 *) p)[0], b = ((const int4 *) p)[1];
    w[0] = a.x; w[1] = a.y; w[2] = a.z; w[3] = a.w;
    w[4] = b.x; w[5] = b.y; w[6] = b.z; w[7] = b.w;
}

static __device__ __forceinline__ float inkling_half(const uint8_t * p) { // p: aligned to 2 bytes
    return __half2float(*(const half *) p);
}

// prmt with constant selectors, whose nibbles of 8 and more repeat the byte's sign.
template <uint32_t selector>
static __device__ __forceinline__ uint32_t inkling_bytes(const uint32_t a, const uint32_t b) {
    uint32_t r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "n"(selector));
    return r;
}

// Lookup tables of IQ3_XXS in shared memory: 256 bytes for each of 256 codes, first
// the 4 magnitudes, then the signs of 8 weights, each once for every lane, so that
// lookups have no bank conflicts and byte*256 + 4*lane is one prmt.
constexpr int INKLING_TABLE_BYTES = 256*256;

// The signs of 8 weights from 7 bits, of which the eighth makes their number even: bit
// 8k+7 is that of weight k, bit 8k+6 that of weight 4+k.
struct inkling_sign_words {
    uint32_t of[128];

    constexpr inkling_sign_words() : of() {
        for (uint32_t code = 0; code < 128; code++) {
            uint32_t signs = code;
            for (int k = 0; k < 7; k++) {
                signs ^= (code >> k & 1) << 7;
            }
            for (int k = 0; k < 4; k++) {
                of[code] |= (signs >> k & 1) << (8*k + 7) | (signs >> (k + 4) & 1) << (8*k + 6);
            }
        }
    }
};

static __device__ const inkling_sign_words inkling_signs;

static __device__ __forceinline__ void inkling_fill_table(uint8_t * table) {
    constexpr int quads = INKLING_TABLE_BYTES/16, together = 8; // so many reads under way
    for (int i0 = threadIdx.x; i0 < quads; i0 += together*blockDim.x) {
        uint32_t words[together];
#pragma unroll
        for (int j = 0; j < together; j++) {
            const int i = i0 + j*blockDim.x, code = i/16 % 256;
            words[j] = i % 16 < 8 ? iq3xxs_grid[code] : inkling_signs.of[code % 128];
        }
#pragma unroll
        for (int j = 0; j < together; j++) {
            const int i = i0 + j*blockDim.x;
            if (i < quads) {
                ((uint4 *) table)[i] = make_uint4(words[j], words[j], words[j], words[j]);
            }
        }
    }
}

// How 32 weights of a type are read: g is the group within its block.
template <ggml_type type> struct inkling_type;

template <> struct inkling_type<GGML_TYPE_IQ3_XXS> {
    static constexpr int bytes = 98, groups = 8, offset = 0;
    static constexpr bool halves = false, mins = false, negs = true;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int g, const uint8_t * table) {
        int q[2], aux[1];
        inkling_words(block + 2 + 8*g, q);
        inkling_words(block + 66 + 4*g, aux);
        const uint32_t a = aux[0], lane = 4*(threadIdx.x % WARP_SIZE);
        const auto magnitudes = [&](uint32_t at) { return *(const int *) (table + at); };
        const auto signs = [&](uint32_t at) { return *(const uint32_t *) (table + at + 128); };
        w.v[0] = magnitudes(inkling_bytes<0x5504>(q[0], lane));
        w.v[1] = magnitudes(inkling_bytes<0x5514>(q[0], lane));
        w.v[2] = magnitudes(inkling_bytes<0x5524>(q[0], lane));
        w.v[3] = magnitudes(inkling_bytes<0x5534>(q[0], lane));
        w.v[4] = magnitudes(inkling_bytes<0x5504>(q[1], lane));
        w.v[5] = magnitudes(inkling_bytes<0x5514>(q[1], lane));
        w.v[6] = magnitudes(inkling_bytes<0x5524>(q[1], lane));
        w.v[7] = magnitudes(inkling_bytes<0x5534>(q[1], lane));
        // 7 bits each; the eighth that the byte brings along makes no difference to the table
        const uint32_t s[4] = {
            signs(inkling_bytes<0x5504>(a, lane)), signs(inkling_bytes<0x5514>(a << 1, lane)),
            signs(inkling_bytes<0x5524>(a << 2, lane)), signs(inkling_bytes<0x5534>(a << 3, lane))};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            w.neg[2*i + 0] = inkling_bytes<0xBA98>(s[i], 0);
            w.neg[2*i + 1] = inkling_bytes<0xBA98>(s[i] << 1, 0);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) {
            w.v[i] ^= w.neg[i];
        }
        w.d0 = inkling_half(block)*(0.25f + 0.5f*(a >> 28));
    }
};

// Scale and minimum of group g of Q4_K and Q5_K, whose blocks begin alike: d, dmin and
// 12 bytes of 6-bit numbers.
static __device__ __forceinline__ void inkling_k_scales(inkling_group & w, const uint8_t * block, const int g) {
    const uint4 head = *(const uint4 *) block;
    const float2 dm = __half22float2(*(const half2 *) &head.x);
    const int at = 8*(g % 4);
    const uint32_t a = head.y >> at, b = head.z >> at, c = head.w >> at;
    const uint32_t scale = g < 4 ? a & 63 : (c & 15) | (a >> 2 & 48);
    const uint32_t min   = g < 4 ? b & 63 : (c >> 4 & 15) | (b >> 2 & 48);
    w.d0 = dm.x*scale;
    w.m  = dm.y*min;
}

template <> struct inkling_type<GGML_TYPE_Q4_K> {
    static constexpr int bytes = 144, groups = 8, offset = 0;
    static constexpr bool halves = false, mins = true, negs = false;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int g, const uint8_t *) {
        inkling_quads(block + 16 + 32*(g / 2), w.v);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            w.v[i] = w.v[i] >> 4*(g % 2) & 0x0F0F0F0F;
        }
        inkling_k_scales(w, block, g);
    }
};

template <> struct inkling_type<GGML_TYPE_Q5_K> {
    static constexpr int bytes = 176, groups = 8, offset = 0;
    static constexpr bool halves = false, mins = true, negs = false;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int g, const uint8_t *) {
        int high[8];
        inkling_quads(block + 16, high);
        inkling_quads(block + 48 + 32*(g / 2), w.v);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            w.v[i] = (w.v[i] >> 4*(g % 2) & 0x0F0F0F0F) | (high[i] >> g << 4 & 0x10101010);
        }
        inkling_k_scales(w, block, g);
    }
};

template <> struct inkling_type<GGML_TYPE_Q6_K> {
    static constexpr int bytes = 210, groups = 8, offset = 32;
    static constexpr bool halves = true, mins = false, negs = false;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int g, const uint8_t *) {
        const int half = g / 4, part = g % 4; // of 128 weights
        int high[8];
        inkling_words(block + 64*half + 32*(part % 2), w.v);
        inkling_words(block + 128 + 32*half, high);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            w.v[i] = (w.v[i] >> 4*(part / 2) & 0x0F0F0F0F) | (high[i] >> 2*part << 4 & 0x30303030);
        }
        const float d = inkling_half(block + 208);
        w.d0 = d*int8_t(block[192 + 2*g]);
        w.d1 = d*int8_t(block[193 + 2*g]);
    }
};

template <> struct inkling_type<GGML_TYPE_Q3_K> {
    static constexpr int bytes = 110, groups = 8, offset = 4;
    static constexpr bool halves = true, mins = false, negs = false;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int g, const uint8_t *) {
        int high[8];
        inkling_words(block, high);
        inkling_words(block + 32 + 32*(g / 4), w.v);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            w.v[i] = (w.v[i] >> 2*(g % 4) & 0x03030303) | (high[i] >> g << 2 & 0x04040404);
        }
        // 16 scales of 6 bits: low 4 in bytes 0 to 7, two of them each, high 2 in bytes 8 to 11
        const uint8_t * scales = block + 96;
        const float d = inkling_half(block + 108);
        const auto scale = [&](int i) {
            return int(scales[i % 8] >> 4*(i / 8) & 15) + 16*int(scales[8 + i % 4] >> 2*(i / 4) & 3) - 32;
        };
        w.d0 = d*scale(2*g);
        w.d1 = d*scale(2*g + 1);
    }
};

template <> struct inkling_type<GGML_TYPE_Q8_0> {
    static constexpr int bytes = 34, groups = 1, offset = 0;
    static constexpr bool halves = false, mins = false, negs = false;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int, const uint8_t *) {
        inkling_words(block + 2, w.v);
        w.d0 = inkling_half(block);
    }
};

template <> struct inkling_type<GGML_TYPE_Q4_0> {
    static constexpr int bytes = 18, groups = 1, offset = 8;
    static constexpr bool halves = false, mins = false, negs = false;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int, const uint8_t *) {
        int q[4];
        inkling_words(block + 2, q);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            w.v[i]     = q[i] & 0x0F0F0F0F;
            w.v[4 + i] = q[i] >> 4 & 0x0F0F0F0F;
        }
        w.d0 = inkling_half(block);
    }
};

// The bytes of a table of 16 at the 4-bit codes in q: those of the low halves of its
// bytes, then those of the high ones. A prmt chooses of 8 bytes; the codes' fourth
// bit chooses of two results.
static __device__ __forceinline__ void inkling_lookup16(const uint32_t q, const uint32_t (&table)[4], int & low, int & high) {
    const uint32_t which = q & 0x77777777, upper = (q & 0x88888888) >> 1 | 0x32103210;
    uint32_t r[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t a = __byte_perm(table[0], table[1], which >> 16*i);
        const uint32_t b = __byte_perm(table[2], table[3], which >> 16*i);
        r[i] = __byte_perm(a, b, upper >> 16*i);
    }
    low  = inkling_bytes<0x6420>(r[0], r[1]);
    high = inkling_bytes<0x7531>(r[0], r[1]);
}

constexpr __device__ uint32_t inkling_four(int a, int b, int c, int d) {
    return uint32_t(a & 255) | uint32_t(b & 255) << 8 | uint32_t(c & 255) << 16 | uint32_t(d & 255) << 24;
}

// What the codes of IQ4_XS in q stand for.
static __device__ __forceinline__ void inkling_iq4(const uint32_t q, int & low, int & high) {
    constexpr uint32_t table[4] = {
        inkling_four(-127, -104, -83, -65), inkling_four(-49, -35, -22, -10), inkling_four(1, 13, 25, 38), inkling_four(53, 69, 89, 113)};
    inkling_lookup16(q, table, low, high);
}

template <> struct inkling_type<GGML_TYPE_IQ4_XS> {
    static constexpr int bytes = 136, groups = 8, offset = 0;
    static constexpr bool halves = false, mins = false, negs = false;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int g, const uint8_t *) {
        const int2 a = ((const int2 *) (block + 8 + 16*g))[0], b = ((const int2 *) (block + 8 + 16*g))[1];
        const int q[4] = {a.x, a.y, b.x, b.y};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            inkling_iq4(q[i], w.v[i], w.v[4 + i]);
        }
        const uint2 head = *(const uint2 *) block;
        const int scale = (head.y >> 4*g & 15) | (head.x >> (16 + 2*g) & 3) << 4;
        w.d0 = inkling_half(block)*(scale - 32);
    }
};

template <> struct inkling_type<GGML_TYPE_MXFP4> {
    static constexpr int bytes = 17, groups = 1, offset = 0;
    static constexpr bool halves = false, mins = false, negs = false;
    static __device__ __forceinline__ void read(inkling_group & w, const uint8_t * block, const int, const uint8_t *) {
        constexpr uint32_t table[4] = {
            inkling_four(0, 1, 2, 3), inkling_four(4, 6, 8, 12), inkling_four(0, -1, -2, -3), inkling_four(-4, -6, -8, -12)};
        int q[4];
        inkling_words(block + 1, q);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            inkling_lookup16(q[i], table, w.v[i], w.v[4 + i]);
        }
        w.d0 = 0.5f*ggml_cuda_e8m0_to_fp32(block[0]);
    }
};

// The types above: X(type) for each, the most frequent first.
#define INKLING_QUANTISED_TYPES(X) \
    X(GGML_TYPE_IQ3_XXS) X(GGML_TYPE_Q4_K) X(GGML_TYPE_Q5_K) X(GGML_TYPE_Q6_K) X(GGML_TYPE_Q3_K) X(GGML_TYPE_Q8_0) \
    X(GGML_TYPE_IQ4_XS) X(GGML_TYPE_Q4_0) X(GGML_TYPE_MXFP4)

// Their numbers in that order: a switch over these is a jump.
enum inkling_kind : int {
#define INKLING_ENUM(t) INKLING_KIND_##t,
    INKLING_QUANTISED_TYPES(INKLING_ENUM)
#undef INKLING_ENUM
    INKLING_KINDS, // not a quantised type, or one without kernel
};

static inline int inkling_kind_of(ggml_type type) {
    switch (type) {
#define INKLING_CASE(t) case t: return INKLING_KIND_##t;
        INKLING_QUANTISED_TYPES(INKLING_CASE)
#undef INKLING_CASE
        default: return INKLING_KINDS;
    }
}

#endif
