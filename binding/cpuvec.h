// Vectors of floats as wide as the CPU that is compiled for has them, by the vector
// extensions of gcc and clang.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define VEC 16
#elif defined(__AVX__)
#define VEC 8
#else
#define VEC 4
#endif

typedef float   vec  __attribute__((vector_size(4 * VEC)));
typedef int32_t ivec __attribute__((vector_size(4 * VEC)));
typedef float   vec_in_memory __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE vec vec_load(const float * p) { return *(const vec_in_memory *) p; }

INLINE void vec_store(float * p, vec x) { *(vec_in_memory *) p = x; }

INLINE vec vec_all(float x) { return (vec){0} + x; }

// a where mask is -1, b where it is 0.
INLINE vec vec_choose(ivec mask, vec a, vec b) { return (vec) (((ivec) a & mask) | ((ivec) b & ~mask)); }

INLINE vec vec_max(vec a, vec b) { return vec_choose(a > b, a, b); }

INLINE float vec_highest(vec x) {
    float top = x[0];
    for (int i = 1; i < VEC; i++) top = x[i] > top ? x[i] : top;
    return top;
}

INLINE float vec_sum(vec x) {
    float sum = 0;
    for (int i = 0; i < VEC; i++) sum += x[i];
    return sum;
}

// exp(x) for x <= 0, off by 2 units of the last place at most; below -87, where
// floats end, it is exp(-87).
//
// x is n·ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts so that n times the first is
// exact, and exp(r) the polynomial of Cephes' expf.
INLINE vec vec_exp(vec x) {
    const float shift = 0x1.8p23f; // adding it rounds to an integer in the low bits
    x = vec_choose(x < vec_all(-87.0f), vec_all(-87.0f), x);
    vec t = x * 0x1.715476p+0f + shift;
    vec n = t - shift;
    vec r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    vec e = p * (r * r) + r + 1.0f;
    return (vec) ((ivec) e + ((ivec) t << 23));
}
