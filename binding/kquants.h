// What the kernels for K-quants share.
//
// 256 weights are a block: whole numbers q of 4 to 6 bits without sign, in groups of 16
// or 32 with a scale s and an offset m each. A weight is d·s·q - m.
//
// An operand of k values x = scale·n has
//
//   n:      int8  [k]       in the order of the weights
//   sums:   float [k/16]    scale·Σ n of each 16
//   scales: float [k/256]
//
// so that Σ w·x = Σ_blocks d·scale·Σ_groups s·Σ q·n - Σ_16s m·sums. Products of 8 bits
// are added up in pairs: they are below 2^15, as 63·127·2 is, and those with the scales
// below 2^31.
//
// The file that includes this says in TARGET which instructions it is compiled for.
#pragma once

#include "dots.h"

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline)) TARGET

enum { K_BLOCK = 256 };

static inline const float * k_sums(const char * x, int64_t k) { return (const float *) (x + k); }

static inline const float * k_scales(const char * x, int64_t k) { return (const float *) (x + k + k / 4); }

// Whether a block whose highest absolute value is top has no numbers n: zeros and what is
// too small to divide by, and what is no number or infinite.
static inline bool k_flat(float top) { return !(top >= 127 * FLT_MIN && top < INFINITY); }

// Such a block: it gives 0, or NaN for what is no number, lest that get lost.
static inline void k_convert_flat(int64_t k, char * to, int64_t block, float top) {
    memset(to + block * K_BLOCK, 0, K_BLOCK);
    memset((char *) k_sums(to, k) + block * 16 * sizeof(float), 0, 16 * sizeof(float));
    ((float *) k_scales(to, k))[block] = top < INFINITY ? 0 : NAN;
}

static inline size_t k_operand_size(int64_t k) { return k + k / 4 + k / 64; }

// Kernels of 1 to DOTS_ROWS rows of INLINE functions that have the number as their first argument.
#define KERNEL(name, n) \
    TARGET static void name##_##n(int64_t k, const void * w, size_t stride, int64_t m, const char * const * x, float * y, int64_t y_stride) { \
        for (int64_t i = 0; i < m; i++) { \
            float out[n]; \
            name(n, k, (const uint8_t *) w + i * stride, x, out); \
            for (int r = 0; r < n; r++) y[r * y_stride + i] = out[r]; \
        } \
    }
#define KERNELS(name) \
    KERNEL(name, 1) KERNEL(name, 2) KERNEL(name, 3) KERNEL(name, 4) \
    static const inkling_dots_kernel name##_kernels[DOTS_ROWS] = { name##_1, name##_2, name##_3, name##_4 };

// A loop over rows whose state lies in registers.
#define EACH_ROW(r, n) _Pragma("GCC unroll 4") for (int r = 0; r < (n); r++)

INLINE float half_at(const uint8_t * p) {
    uint16_t h;
    memcpy(&h, p, sizeof(h));
    return _cvtsh_ss(h);
}

// The scales and offsets of Q4_K and Q5_K, 6 bits each, in 12 bytes: those of the first four groups, the low 4 bits of the
// others' scales and offsets in one byte, and the upper 2 in the upper bits of the first eight.
//
//   res: scales of the 8 groups, offsets of the 8 groups
INLINE __m128i unpack_scales(const uint8_t * w) {
    const __m128i at = _mm_loadu_si128((const __m128i *) w); // d and the offsets' d before them
    const __m128i low = _mm_and_si128(_mm_srlv_epi32(_mm_shuffle_epi8(at, _mm_setr_epi8(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)), _mm_setr_epi32(0, 0, 0, 4)),
                                      _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f));
    const __m128i high = _mm_and_si128(_mm_srli_epi32(_mm_shuffle_epi8(at, _mm_setr_epi8(-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1, 8, 9, 10, 11)), 2), _mm_set1_epi8(0x30));
    return _mm_or_si128(low, high);
}
