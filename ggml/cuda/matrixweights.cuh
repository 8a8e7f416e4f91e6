// Quantised weights as fragments of tensor cores: a warp turns what it has copied to
// shared memory into the registers that the products take, without a way back.
//
// Which weight of a row stands in which place of a fragment is free, as long as those of
// the other operand stand there too: lane L has 8 neighbours of every group of 32, from
// 8(L % 4) on, of row L/4. So its part of the codes is in one place, and the other
// operand is read in 16 bytes. Values are F16: scales are F16 times small numbers, and
// multiples of the smallest F16 where they are small.
#pragma once

#include "fused.cuh"
#include "productsgroups.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

namespace inkling {

// 8 weights, of neighbours two in a register.
using weights8 = uint32_t[4];

static __device__ __forceinline__ half2 as_half2(const uint32_t x) { return *(const half2 *) &x; }
static __device__ __forceinline__ uint32_t as_bits(const half2 x) { return *(const uint32_t *) &x; }

// Bytes 2i and 2i+1 of x as halves of 1024 and more.
template <int i> static __device__ __forceinline__ half2 thousands(const uint32_t x) {
    return as_half2(inkling_bytes<i == 0 ? 0x4140 : 0x4342>(x, 0x64646464));
}

// A number below 1024 as 1024 and more, twice.
static __device__ __forceinline__ half2 both(const uint32_t x) { return as_half2(x*0x00010001u + 0x64006400u); }

// Bytes less offset, times scale, plus m.
template <int offset> static __device__ __forceinline__ void scaled(weights8 & w, const uint32_t low, const uint32_t high, const half2 scale, const half2 m) {
    const half2 from = __float2half2_rn(1024.0f + offset);
    w[0] = as_bits(__hfma2(__hsub2(thousands<0>(low), from), scale, m));
    w[1] = as_bits(__hfma2(__hsub2(thousands<1>(low), from), scale, m));
    w[2] = as_bits(__hfma2(__hsub2(thousands<0>(high), from), scale, m));
    w[3] = as_bits(__hfma2(__hsub2(thousands<1>(high), from), scale, m));
}

template <int offset> static __device__ __forceinline__ void scaled(weights8 & w, const uint32_t low, const uint32_t high, const half2 scale) {
    const half2 from = __float2half2_rn(1024.0f + offset);
    w[0] = as_bits(__hmul2(__hsub2(thousands<0>(low), from), scale));
    w[1] = as_bits(__hmul2(__hsub2(thousands<1>(low), from), scale));
    w[2] = as_bits(__hmul2(__hsub2(thousands<0>(high), from), scale));
    w[3] = as_bits(__hmul2(__hsub2(thousands<1>(high), from), scale));
}

// How a type is read: bytes of 256 weights; what is read once for the next span of their 8
// groups, of which g is the first; and the weights of quarter q of group g. at is aligned to 2
// bytes, and to 8 or 16 if bytes are a multiple of these.
template <ggml_type type> struct matrix_type;

// Of types that have nothing to keep.
struct matrix_nothing {
    static constexpr int span = 8;
    struct kept {};
    static __device__ __forceinline__ void open(kept &, const uint8_t *, const int) {}
};

// The types that there are: X(type) for each.
#define INKLING_MATRIX_TYPES(X) \
    X(GGML_TYPE_IQ3_XXS) X(GGML_TYPE_Q4_K) X(GGML_TYPE_Q5_K) X(GGML_TYPE_Q6_K) X(GGML_TYPE_Q3_K) X(GGML_TYPE_Q8_0) X(GGML_TYPE_Q4_0) X(GGML_TYPE_IQ4_XS)

// Magnitudes of IQ3_XXS, a quarter of them: four halves of each of 256 codes, once for every lane of half a
// warp, since reads of 8 bytes are served by halves. Lanes get the place of their own.
constexpr int MAGNITUDES_BYTES = 256*16*8;

static __device__ __forceinline__ void fill_magnitudes(uint8_t * table) {
    for (int i = threadIdx.x; i < 256*16; i += blockDim.x) {
        const uint32_t four = iq3xxs_grid[i/16];
        const half2 zero = __float2half2_rn(1024.0f), quarter = __float2half2_rn(0.25f);
        ((uint2 *) table)[i] = make_uint2(as_bits(__hmul2(__hsub2(thousands<0>(four), zero), quarter)), as_bits(__hmul2(__hsub2(thousands<1>(four), zero), quarter)));
    }
}

template <> struct matrix_type<GGML_TYPE_IQ3_XXS> {
    static constexpr int bytes = 98, table = MAGNITUDES_BYTES, span = 8;
    struct kept { half2 d; };
    static __device__ __forceinline__ void open(kept & of, const uint8_t * at, const int) { of.d = __half2half2(*(const half *) at); }
    static __device__ __forceinline__ void read(weights8 & w, const kept & of, const uint8_t * at, const int g, const int q, const uint8_t * table) {
        const uint32_t codes = *(const uint16_t *) (at + 2 + 8*g + 2*q);
        const uint16_t * words = (const uint16_t *) (at + 66 + 4*g);
        const uint32_t aux = words[0] | uint32_t(words[1]) << 16;
        const uint2 a = *(const uint2 *) (table + (codes & 255)*128), b = *(const uint2 *) (table + (codes >> 8)*128);
        const half2 odd = __hfma2(both(aux >> 28), __float2half2_rn(2.0f), __float2half2_rn(-2047.0f)), s = __hmul2(of.d, odd);
        // signs of 8 weights from 7 bits, of which the eighth makes their number even; each is
        // moved to the sign of its half
        const uint32_t seven = aux >> 7*q & 127, signs = seven | (__popc(seven) & 1) << 7;
        w[0] = as_bits(__hmul2(as_half2(a.x), s)) ^ (signs*0x40008000u & 0x80008000u);
        w[1] = as_bits(__hmul2(as_half2(a.y), s)) ^ (signs*0x10002000u & 0x80008000u);
        w[2] = as_bits(__hmul2(as_half2(b.x), s)) ^ (signs*0x04000800u & 0x80008000u);
        w[3] = as_bits(__hmul2(as_half2(b.y), s)) ^ (signs*0x01000200u & 0x80008000u);
    }
};

// Scales and minima of 4 of the 8 groups of Q4_K and Q5_K, whose blocks begin alike: d, dmin and 12
// bytes of 6-bit numbers.
struct matrix_k_scales {
    static constexpr int span = 4;
    struct kept {
        half2 dm;
        uint32_t scale, min; // a byte each
    };
    static __device__ __forceinline__ void open(kept & of, const uint8_t * at, const int g) {
        const uint4 head = *(const uint4 *) at;
        of.dm    = as_half2(head.x);
        of.scale = g < 4 ? head.y & 0x3F3F3F3F : (head.w & 0x0F0F0F0F)      | (head.y >> 2 & 0x30303030);
        of.min   = g < 4 ? head.z & 0x3F3F3F3F : (head.w >> 4 & 0x0F0F0F0F) | (head.z >> 2 & 0x30303030);
    }
    static __device__ __forceinline__ void scaled_less(weights8 & w, const uint32_t low, const uint32_t high, const kept & of, const int g) {
        const uint32_t pair = (of.scale >> 8*(g % 4) & 63) | (of.min >> 8*(g % 4) & 63) << 16;
        const half2 sm = __hmul2(of.dm, __hsub2(as_half2(pair | 0x64006400), __float2half2_rn(1024.0f)));
        scaled<0>(w, low, high, __low2half2(sm), __hneg2(__high2half2(sm)));
    }
};

template <> struct matrix_type<GGML_TYPE_Q4_K> : matrix_k_scales {
    static constexpr int bytes = 144, table = 0;
    static __device__ __forceinline__ void read(weights8 & w, const kept & of, const uint8_t * at, const int g, const int q, const uint8_t *) {
        const uint2 v = *(const uint2 *) (at + 16 + 32*(g / 2) + 8*q);
        scaled_less(w, v.x >> 4*(g % 2) & 0x0F0F0F0F, v.y >> 4*(g % 2) & 0x0F0F0F0F, of, g);
    }
};

template <> struct matrix_type<GGML_TYPE_Q5_K> : matrix_k_scales {
    static constexpr int bytes = 176, table = 0;
    static __device__ __forceinline__ void read(weights8 & w, const kept & of, const uint8_t * at, const int g, const int q, const uint8_t *) {
        const uint2 high = *(const uint2 *) (at + 16 + 8*q), v = *(const uint2 *) (at + 48 + 32*(g / 2) + 8*q);
        scaled_less(w, (v.x >> 4*(g % 2) & 0x0F0F0F0F) | (high.x >> g << 4 & 0x10101010), (v.y >> 4*(g % 2) & 0x0F0F0F0F) | (high.y >> g << 4 & 0x10101010), of, g);
    }
};

template <> struct matrix_type<GGML_TYPE_Q6_K> {
    static constexpr int bytes = 210, table = 0, span = 8;
    struct kept { half2 d; };
    static __device__ __forceinline__ void open(kept & of, const uint8_t * at, const int) { of.d = __half2half2(*(const half *) (at + 208)); }
    static __device__ __forceinline__ void read(weights8 & w, const kept & of, const uint8_t * at, const int g, const int q, const uint8_t *) {
        const int half = g / 4, part = g % 4; // of 128 weights
        int v[2], high[2];
        inkling_words(at + 64*half + 32*(part % 2) + 8*q, v);
        inkling_words(at + 128 + 32*half + 8*q, high);
        const half2 scale = __hsub2(both(at[192 + 2*g + q/2] ^ 128), __float2half2_rn(1024.0f + 128.0f));
        scaled<32>(w, (v[0] >> 4*(part / 2) & 0x0F0F0F0F) | (high[0] >> 2*part << 4 & 0x30303030), (v[1] >> 4*(part / 2) & 0x0F0F0F0F) | (high[1] >> 2*part << 4 & 0x30303030),
            __hmul2(of.d, scale));
    }
};

template <> struct matrix_type<GGML_TYPE_Q3_K> {
    static constexpr int bytes = 110, table = 0, span = 8;
    struct kept { half2 d; };
    static __device__ __forceinline__ void open(kept & of, const uint8_t * at, const int) { of.d = __half2half2(*(const half *) (at + 108)); }
    static __device__ __forceinline__ void read(weights8 & w, const kept & of, const uint8_t * at, const int g, const int q, const uint8_t *) {
        int v[2], high[2];
        inkling_words(at + 32 + 32*(g / 4) + 8*q, v);
        inkling_words(at + 8*q, high);
        const int i = 2*g + q/2; // of 16 scales of 6 bits
        const uint32_t scale = (at[96 + i % 8] >> 4*(i / 8) & 15) | (at[104 + i % 4] >> 2*(i / 4) & 3) << 4;
        scaled<4>(w, (v[0] >> 2*(g % 4) & 0x03030303) | (high[0] >> g << 2 & 0x04040404), (v[1] >> 2*(g % 4) & 0x03030303) | (high[1] >> g << 2 & 0x04040404),
            __hmul2(of.d, __hsub2(both(scale), __float2half2_rn(1024.0f + 32.0f))));
    }
};

template <> struct matrix_type<GGML_TYPE_Q8_0> : matrix_nothing {
    static constexpr int bytes = 8*34, table = 0;
    static __device__ __forceinline__ void read(weights8 & w, const kept &, const uint8_t * at, const int g, const int q, const uint8_t *) {
        int v[2];
        inkling_words(at + 34*g + 2 + 8*q, v);
        scaled<128>(w, v[0] ^ 0x80808080, v[1] ^ 0x80808080, __half2half2(*(const half *) (at + 34*g)));
    }
};

template <> struct matrix_type<GGML_TYPE_Q4_0> : matrix_nothing {
    static constexpr int bytes = 8*18, table = 0;
    static __device__ __forceinline__ void read(weights8 & w, const kept &, const uint8_t * at, const int g, const int q, const uint8_t *) {
        int v[2];
        inkling_words(at + 18*g + 2 + 8*(q % 2), v);
        scaled<8>(w, v[0] >> 4*(q / 2) & 0x0F0F0F0F, v[1] >> 4*(q / 2) & 0x0F0F0F0F, __half2half2(*(const half *) (at + 18*g)));
    }
};

template <> struct matrix_type<GGML_TYPE_IQ4_XS> : matrix_nothing {
    static constexpr int bytes = 136, table = 0;
    static __device__ __forceinline__ void read(weights8 & w, const kept &, const uint8_t * at, const int g, const int q, const uint8_t *) {
        const uint2 v = *(const uint2 *) (at + 8 + 16*g + 8*(q % 2)), head = *(const uint2 *) at;
        int low[2], high[2];
        inkling_iq4(v.x, low[0], high[0]);
        inkling_iq4(v.y, low[1], high[1]);
        const int scale = int((head.y >> 4*g & 15) | (head.x >> (16 + 2*g) & 3) << 4) - 32;
        scaled<128>(w, (q < 2 ? low[0] : high[0]) ^ 0x80808080, (q < 2 ? low[1] : high[1]) ^ 0x80808080, __float2half2_rn(inkling_half(at)*scale));
    }
};

} // namespace inkling

#endif
