#if defined(__x86_64__)

// Compiled for these whatever the rest is compiled for, and chosen when the program runs.
#define TARGET __attribute__((target("avx2,fma,f16c")))

#include "kquants.h"

INLINE float highest(__m256 x) {
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

INLINE float total(__m256 x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}

TARGET static void k_convert(int64_t k, const float * x, char * to, int64_t begin, int64_t end) {
    float * sums = (float *) k_sums(to, k), * scales = (float *) k_scales(to, k);
    const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    for (int64_t b = begin; b < end; b++) {
        const float * from = x + b * K_BLOCK;
        __m256 high = _mm256_setzero_ps(), nan = high;
        for (int i = 0; i < K_BLOCK; i += 8) {
            const __m256 v = _mm256_loadu_ps(from + i);
            nan = _mm256_or_ps(nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
            high = _mm256_max_ps(high, _mm256_and_ps(no_sign, v));
        }
        const float top = _mm256_movemask_ps(nan) ? NAN : highest(high), inverse = 127 / top;
        if (k_flat(top)) {
            k_convert_flat(k, to, b, top);
            continue;
        }
        const float scale = 1 / inverse;
        scales[b] = scale;
        for (int i = 0; i < K_BLOCK; i += 16) {
            const __m256i lo = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_set1_ps(inverse), _mm256_loadu_ps(from + i)));
            const __m256i hi = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_set1_ps(inverse), _mm256_loadu_ps(from + i + 8)));
            const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(lo, hi), 0xd8);
            const __m128i n = _mm_packs_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
            _mm_store_si128((__m128i *) (to + b * K_BLOCK + i), n);
            sums[b * 16 + i / 16] = scale * total(_mm256_cvtepi32_ps(_mm256_madd_epi16(both, _mm256_set1_epi16(1))));
        }
    }
}

// Scale g of 8, for the products of 32 weights: int16 by int16.
INLINE __m256i one_of(__m256i scales, int g) { return _mm256_shuffle_epi8(scales, _mm256_set1_epi16((short) (0x101 * 2 * g + 0x100))); }

// Scales g and g+1 of 8, each for 16 weights.
INLINE __m256i two_of(__m256i scales, int g) {
    const short at = (short) (0x101 * 2 * g + 0x100);
    return _mm256_shuffle_epi8(scales, _mm256_inserti128_si256(_mm256_set1_epi16(at), _mm_set1_epi16((short) (at + 0x202)), 1));
}

// sum[r] += Σ q·n·s over the 32 values at n of each operand.
INLINE void multiply(int n_rows, __m256i * sum, __m256i q, __m256i s, const char * const * x, int64_t at) {
    EACH_ROW(r, n_rows) {
        const __m256i pairs = _mm256_maddubs_epi16(q, _mm256_load_si256((const __m256i *) (x[r] + at)));
        sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(pairs, s));
    }
}

// Adds what a block gives: y += d·scale·sum - m·sums.
INLINE void add_block(int n_rows, __m256 * y, const __m256i * sum, __m256 d, const __m256 * m, const char * const * x, int64_t k, int64_t block) {
    EACH_ROW(r, n_rows) {
        y[r] = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(k_scales(x[r], k)[block])), _mm256_cvtepi32_ps(sum[r]), y[r]);
        y[r] = _mm256_fnmadd_ps(m[0], _mm256_load_ps(k_sums(x[r], k) + 16 * block), y[r]);
        y[r] = _mm256_fnmadd_ps(m[1], _mm256_load_ps(k_sums(x[r], k) + 16 * block + 8), y[r]);
    }
}

// See dots_avx512.c for how the types lie in memory.
INLINE void dots_q4_q5(int n_rows, bool five, int64_t k, const uint8_t * w, const char * const * x, float * out) {
    const __m256i low = _mm256_set1_epi8(15), sixteen = _mm256_set1_epi8(16);
    __m256 y[DOTS_ROWS];
    EACH_ROW(r, n_rows) y[r] = _mm256_setzero_ps();
    for (int64_t b = 0; b < k / K_BLOCK; b++, w += five ? 176 : 144) {
        const __m128i groups = unpack_scales(w), m = _mm_unpackhi_epi8(groups, groups); // offsets of each 16
        const __m256i scales = _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(groups));
        const __m256 m_d = _mm256_set1_ps(half_at(w + 2));
        const __m256 offsets[2] = { _mm256_mul_ps(m_d, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(m))),
                                    _mm256_mul_ps(m_d, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(m, 8)))) };
        const __m256i fifth = five ? _mm256_loadu_si256((const __m256i *) (w + 16)) : low;
        const uint8_t * q = w + (five ? 48 : 16);
        __m256i sum[DOTS_ROWS];
        EACH_ROW(r, n_rows) sum[r] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const __m256i both = _mm256_loadu_si256((const __m256i *) (q + 32 * j));
            __m256i v = _mm256_and_si256(both, low), u = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
            if (five) { // the bit to bit 4
                v = _mm256_or_si256(v, _mm256_and_si256(j < 2 ? _mm256_slli_epi16(fifth, 4 - 2 * j) : _mm256_srli_epi16(fifth, 2 * j - 4), sixteen));
                u = _mm256_or_si256(u, _mm256_and_si256(j < 2 ? _mm256_slli_epi16(fifth, 3 - 2 * j) : _mm256_srli_epi16(fifth, 2 * j - 3), sixteen));
            }
            multiply(n_rows, sum, v, one_of(scales, 2 * j), x, b * K_BLOCK + 64 * j);
            multiply(n_rows, sum, u, one_of(scales, 2 * j + 1), x, b * K_BLOCK + 64 * j + 32);
        }
        add_block(n_rows, y, sum, _mm256_set1_ps(half_at(w)), offsets, x, k, b);
    }
    EACH_ROW(r, n_rows) out[r] = total(y[r]);
}

INLINE void dots_q4_K(int n_rows, int64_t k, const uint8_t * w, const char * const * x, float * out) { dots_q4_q5(n_rows, false, k, w, x, out); }

INLINE void dots_q5_K(int n_rows, int64_t k, const uint8_t * w, const char * const * x, float * out) { dots_q4_q5(n_rows, true, k, w, x, out); }

INLINE void dots_q6_K(int n_rows, int64_t k, const uint8_t * w, const char * const * x, float * out) {
    const __m256i low = _mm256_set1_epi8(15), high = _mm256_set1_epi8(0x30);
    __m256 y[DOTS_ROWS];
    EACH_ROW(r, n_rows) y[r] = _mm256_setzero_ps();
    for (int64_t b = 0; b < k / K_BLOCK; b++, w += 210) {
        const __m128i s = _mm_loadu_si128((const __m128i *) (w + 192));
        const float d = half_at(w + 208);
        const __m256 m_d = _mm256_set1_ps(32 * d);
        const __m256 offsets[2] = { _mm256_mul_ps(m_d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(s))),
                                    _mm256_mul_ps(m_d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(s, 8)))) };
        __m256i sum[DOTS_ROWS];
        EACH_ROW(r, n_rows) sum[r] = _mm256_setzero_si256();
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            const __m256i scales = _mm256_broadcastsi128_si256(_mm_cvtepi8_epi16(h == 0 ? s : _mm_srli_si128(s, 8)));
            const __m256i first = _mm256_loadu_si256((const __m256i *) (w + 64 * h)), second = _mm256_loadu_si256((const __m256i *) (w + 64 * h + 32));
            const __m256i two = _mm256_loadu_si256((const __m256i *) (w + 128 + 32 * h));
            const int64_t at = b * K_BLOCK + 128 * h;
            multiply(n_rows, sum, _mm256_or_si256(_mm256_and_si256(first, low), _mm256_and_si256(_mm256_slli_epi16(two, 4), high)), two_of(scales, 0), x, at);
            multiply(n_rows, sum, _mm256_or_si256(_mm256_and_si256(second, low), _mm256_and_si256(_mm256_slli_epi16(two, 2), high)), two_of(scales, 2), x, at + 32);
            multiply(n_rows, sum, _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(first, 4), low), _mm256_and_si256(two, high)), two_of(scales, 4), x, at + 64);
            multiply(n_rows, sum, _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(second, 4), low), _mm256_and_si256(_mm256_srli_epi16(two, 2), high)), two_of(scales, 6), x, at + 96);
        }
        add_block(n_rows, y, sum, _mm256_set1_ps(d), offsets, x, k, b);
    }
    EACH_ROW(r, n_rows) out[r] = total(y[r]);
}

KERNELS(dots_q4_K)
KERNELS(dots_q5_K)
KERNELS(dots_q6_K)

bool inkling_dots_avx2(struct inkling_dots * d, enum ggml_type type) {
    if (d->k % K_BLOCK != 0) return false;
    switch (type) {
        case GGML_TYPE_Q4_K: d->kernels = dots_q4_K_kernels; break;
        case GGML_TYPE_Q5_K: d->kernels = dots_q5_K_kernels; break;
        case GGML_TYPE_Q6_K: d->kernels = dots_q6_K_kernels; break;
        default: return false;
    }
    d->convert = k_convert;
    d->size    = k_operand_size(d->k);
    d->blocks  = d->k / K_BLOCK;
    return true;
}

#else

#include "dots.h"

bool inkling_dots_avx2(struct inkling_dots * d, enum ggml_type type) {
    (void) d, (void) type;
    return false;
}

#endif
