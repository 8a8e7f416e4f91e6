#if defined(__x86_64__)

// Compiled for these whatever the rest is compiled for, and chosen when the program runs.
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")))

#include "kquants.h"

INLINE __m512i halves(__m256i lo, __m256i hi) { return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1); }

INLINE __m512i twice(const uint8_t * p) { return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *) p)); }

TARGET static void k_convert(int64_t k, const float * x, char * to, int64_t begin, int64_t end) {
    float * sums = (float *) k_sums(to, k), * scales = (float *) k_scales(to, k);
    for (int64_t b = begin; b < end; b++) {
        const float * from = x + b * K_BLOCK;
        __m512 high = _mm512_setzero_ps();
        __mmask16 nan = 0;
        for (int i = 0; i < K_BLOCK; i += 16) {
            const __m512 v = _mm512_loadu_ps(from + i);
            nan |= _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
            high = _mm512_max_ps(high, _mm512_abs_ps(v));
        }
        const float top = nan ? NAN : _mm512_reduce_max_ps(high), inverse = 127 / top;
        if (k_flat(top)) {
            k_convert_flat(k, to, b, top);
            continue;
        }
        const float scale = 1 / inverse;
        scales[b] = scale;
        for (int i = 0; i < K_BLOCK; i += 16) {
            const __m512i n = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_set1_ps(inverse), _mm512_loadu_ps(from + i)));
            _mm_store_si128((__m128i *) (to + b * K_BLOCK + i), _mm512_cvtsepi32_epi8(n));
            sums[b * 16 + i / 16] = scale * (float) _mm512_reduce_add_epi32(n);
        }
    }
}

// Scales of two groups of 32, or of four of 16, for the products of 64 weights: int16 by int16.
INLINE __m512i pair_of(__m512i scales, int first) {
    return _mm512_permutexvar_epi16(halves(_mm256_set1_epi16((short) first), _mm256_set1_epi16((short) (first + 1))), scales);
}

INLINE __m512i four_of(__m512i scales, int first) {
    const __m256i lo = _mm256_inserti128_si256(_mm256_set1_epi16((short) first), _mm_set1_epi16((short) (first + 1)), 1);
    return _mm512_permutexvar_epi16(halves(lo, _mm256_add_epi16(lo, _mm256_set1_epi16(2))), scales);
}

// sum[r] += Σ q·n·s over the 64 values at n of each operand.
INLINE void multiply(int n_rows, __m512i * sum, __m512i q, __m512i s, const char * const * x, int64_t at) {
    EACH_ROW(r, n_rows) sum[r] = _mm512_dpwssd_epi32(sum[r], _mm512_maddubs_epi16(q, _mm512_load_si512(x[r] + at)), s);
}

// Adds what a block gives: y += d·scale·sum - m·sums.
INLINE void add_block(int n_rows, __m512 * y, const __m512i * sum, __m512 d, __m512 m, const char * const * x, int64_t k, int64_t block) {
    EACH_ROW(r, n_rows) {
        y[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(k_scales(x[r], k)[block])), _mm512_cvtepi32_ps(sum[r]), y[r]);
        y[r] = _mm512_fnmadd_ps(m, _mm512_load_ps(k_sums(x[r], k) + 16 * block), y[r]);
    }
}

// Q4_K: d, offsets' d, 12 bytes with 8 scales and 8 offsets of 6 bits, then 4 times 32 bytes whose low halves are a
// group and whose high ones the next. Q5_K has 32 bytes between with the fifth bits: bit g is that of group g.
INLINE void dots_q4_q5(int n_rows, bool five, int64_t k, const uint8_t * w, const char * const * x, float * out) {
    const __m512i low = _mm512_set1_epi8(15), sixteen = _mm512_set1_epi8(16);
    const __m512i shift = halves(_mm256_setzero_si256(), _mm256_set1_epi16(4));
    __m512 y[DOTS_ROWS];
    EACH_ROW(r, n_rows) y[r] = _mm512_setzero_ps();
    for (int64_t b = 0; b < k / K_BLOCK; b++, w += five ? 176 : 144) {
        const __m128i groups = unpack_scales(w);
        const __m512i scales = _mm512_castsi256_si512(_mm256_cvtepu8_epi16(groups));
        const __m512 offsets = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_unpackhi_epi8(groups, groups))); // of each 16
        const __m512i fifth = five ? twice(w + 16) : low;
        const uint8_t * q = w + (five ? 48 : 16);
        __m512i sum[DOTS_ROWS];
        EACH_ROW(r, n_rows) sum[r] = _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            __m512i v = _mm512_and_si512(_mm512_srlv_epi16(twice(q + 32 * j), shift), low);
            if (five) {
                const __m512i bits = halves(_mm256_set1_epi8((char) (1 << 2 * j)), _mm256_set1_epi8((char) (2 << 2 * j)));
                v = _mm512_mask_add_epi8(v, _mm512_test_epi8_mask(fifth, bits), v, sixteen);
            }
            multiply(n_rows, sum, v, pair_of(scales, 2 * j), x, b * K_BLOCK + 64 * j);
        }
        add_block(n_rows, y, sum, _mm512_set1_ps(half_at(w)), _mm512_mul_ps(_mm512_set1_ps(half_at(w + 2)), offsets), x, k, b);
    }
    EACH_ROW(r, n_rows) out[r] = _mm512_reduce_add_ps(y[r]);
}

INLINE void dots_q4_K(int n_rows, int64_t k, const uint8_t * w, const char * const * x, float * out) { dots_q4_q5(n_rows, false, k, w, x, out); }

INLINE void dots_q5_K(int n_rows, int64_t k, const uint8_t * w, const char * const * x, float * out) { dots_q4_q5(n_rows, true, k, w, x, out); }

// Q6_K: for each half of a block 64 bytes with the low 4 bits of 64 weights and, in the upper halves, of the next 64;
// then for each half 32 bytes with the other 2 bits of four times 32; 16 scales with a sign; d. A weight is d·s·(q - 32).
INLINE void dots_q6_K(int n_rows, int64_t k, const uint8_t * w, const char * const * x, float * out) {
    const __m512i low = _mm512_set1_epi8(15), high = _mm512_set1_epi8(0x30);
    const __m512i shift = halves(_mm256_setzero_si256(), _mm256_set1_epi16(2));
    __m512 y[DOTS_ROWS];
    EACH_ROW(r, n_rows) y[r] = _mm512_setzero_ps();
    for (int64_t b = 0; b < k / K_BLOCK; b++, w += 210) {
        const __m128i s = _mm_loadu_si128((const __m128i *) (w + 192));
        const __m512i scales = _mm512_castsi256_si512(_mm256_cvtepi8_epi16(s));
        const float d = half_at(w + 208);
        __m512i sum[DOTS_ROWS];
        EACH_ROW(r, n_rows) sum[r] = _mm512_setzero_si512();
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            const __m512i four = _mm512_loadu_si512(w + 64 * h), two = _mm512_srlv_epi16(twice(w + 128 + 32 * h), shift);
            __m512i v = _mm512_or_si512(_mm512_and_si512(four, low), _mm512_and_si512(_mm512_slli_epi16(two, 4), high));
            multiply(n_rows, sum, v, four_of(scales, 8 * h), x, b * K_BLOCK + 128 * h);
            v = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(four, 4), low), _mm512_and_si512(two, high));
            multiply(n_rows, sum, v, four_of(scales, 8 * h + 4), x, b * K_BLOCK + 128 * h + 64);
        }
        const __m512 offsets = _mm512_mul_ps(_mm512_set1_ps(32 * d), _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(s)));
        add_block(n_rows, y, sum, _mm512_set1_ps(d), offsets, x, k, b);
    }
    EACH_ROW(r, n_rows) out[r] = _mm512_reduce_add_ps(y[r]);
}

// Q8_0: 32 weights with a sign to a block, d before them. An operand has, for each 64 values,
//
//   n:      int8  [k]
//   scales: float [k/4]    those of each 32 values 8 times, as the sums of 4 products lie

enum { Q8_BLOCK = 64 };

static size_t q8_operand_size(int64_t k) { return 2 * k; }

TARGET static void q8_convert(int64_t k, const float * x, char * to, int64_t begin, int64_t end) {
    float * scales = (float *) (to + k);
    for (int64_t b = 2 * begin; b < 2 * end; b++) {
        const __m512 lo = _mm512_loadu_ps(x + 32 * b), hi = _mm512_loadu_ps(x + 32 * b + 16);
        const bool nan = _mm512_cmp_ps_mask(lo, hi, _CMP_UNORD_Q) != 0;
        const float top = nan ? NAN : _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(lo), _mm512_abs_ps(hi)));
        const __m512 inverse = _mm512_set1_ps(top >= FLT_MIN && top < INFINITY ? 127 / top : 0);
        _mm_store_si128((__m128i *) (to + 32 * b), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(lo, inverse))));
        _mm_store_si128((__m128i *) (to + 32 * b + 16), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(hi, inverse))));
        _mm256_store_ps(scales + 8 * b, _mm256_set1_ps(_cvtsh_ss(_cvtss_sh(top / 127, _MM_FROUND_TO_NEAREST_INT)))); // as ggml's, of 16 bits
    }
}

INLINE void dots_q8_0(int n_rows, int64_t k, const uint8_t * w, const char * const * x, float * out) {
    __m512 y[DOTS_ROWS];
    EACH_ROW(r, n_rows) y[r] = _mm512_setzero_ps();
    for (int64_t at = 0; at < k; at += Q8_BLOCK, w += 68) {
        const __m512 d = _mm512_insertf32x8(_mm512_set1_ps(half_at(w)), _mm256_set1_ps(half_at(w + 34)), 1);
        const __m512i q = halves(_mm256_loadu_si256((const __m256i *) (w + 2)), _mm256_loadu_si256((const __m256i *) (w + 36)));
        // One of the factors must have no sign: |q| and n with the sign of q.
        const __mmask64 negative = _mm512_movepi8_mask(q);
        const __m512i size = _mm512_abs_epi8(q);
        EACH_ROW(r, n_rows) {
            const __m512i n = _mm512_load_si512(x[r] + at);
            const __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), size, _mm512_mask_sub_epi8(n, negative, _mm512_setzero_si512(), n));
            y[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), _mm512_mul_ps(d, _mm512_load_ps((const float *) (x[r] + k + at))), y[r]);
        }
    }
    EACH_ROW(r, n_rows) out[r] = _mm512_reduce_add_ps(y[r]);
}

KERNELS(dots_q4_K)
KERNELS(dots_q5_K)
KERNELS(dots_q6_K)
KERNELS(dots_q8_0)

bool inkling_dots_avx512(struct inkling_dots * d, enum ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q4_K: d->kernels = dots_q4_K_kernels; break;
        case GGML_TYPE_Q5_K: d->kernels = dots_q5_K_kernels; break;
        case GGML_TYPE_Q6_K: d->kernels = dots_q6_K_kernels; break;
        case GGML_TYPE_Q8_0: d->kernels = dots_q8_0_kernels; break;
        default: return false;
    }
    const bool q8 = type == GGML_TYPE_Q8_0;
    const int64_t block = q8 ? Q8_BLOCK : K_BLOCK;
    if (d->k % block != 0) {
        d->kernels = NULL;
        return false;
    }
    d->convert = q8 ? q8_convert : k_convert;
    d->size    = q8 ? q8_operand_size(d->k) : k_operand_size(d->k);
    d->blocks  = d->k / block;
    return true;
}

#else

#include "dots.h"

bool inkling_dots_avx512(struct inkling_dots * d, enum ggml_type type) {
    (void) d, (void) type;
    return false;
}

#endif
