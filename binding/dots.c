#include "dots.h"

// The distance of operands: an odd number of cache lines, lest the same part of all of
// them lie in one set of the cache.
static size_t distance(size_t n) {
    const size_t lines = (n + DOTS_ALIGN - 1) / DOTS_ALIGN;
    return (lines | 1) * DOTS_ALIGN;
}

enum inkling_vectors inkling_vectors(void) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) return VECTORS_NONE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni")) return VECTORS_AVX512_VNNI;
    return VECTORS_AVX2;
#else
    return VECTORS_NONE;
#endif
}

struct inkling_dots inkling_dots_of(enum inkling_vectors vectors, enum ggml_type type, int64_t k) {
    struct inkling_dots d = { .k = k };
    const bool own = vectors == VECTORS_AVX512_VNNI ? inkling_dots_avx512(&d, type) : vectors == VECTORS_AVX2 && inkling_dots_avx2(&d, type);
    if (!own) {
        const struct ggml_type_traits_cpu * traits = ggml_get_type_traits_cpu(type);
        d.dot        = traits->vec_dot;
        d.operand    = traits->vec_dot_type;
        d.from_float = ggml_get_type_traits_cpu(d.operand)->from_float;
        d.blocks     = k / ggml_blck_size(d.operand);
        d.size       = ggml_row_size(d.operand, k);
    }
    d.size = distance(d.size);
    return d;
}

bool inkling_dots_same_operand(const struct inkling_dots * a, const struct inkling_dots * b) {
    return a->k == b->k && a->convert == b->convert && a->operand == b->operand;
}

// Converts the blocks from begin to end-1 of a row.
static void convert_blocks(const struct inkling_dots * d, const float * x, char * to, int64_t begin, int64_t end) {
    if (d->convert) {
        d->convert(d->k, x, to, begin, end);
        return;
    }
    const int64_t size = ggml_blck_size(d->operand);
    d->from_float(x + begin * size, to + begin * ggml_type_size(d->operand), (end - begin) * size);
}

void inkling_dots_convert(const struct inkling_dots * d, const struct inkling_rows * x, int64_t rows, char * to, int ith, int nth) {
    const int64_t blocks = rows * d->blocks;
    for (int64_t b = blocks * ith / nth, end = blocks * (ith + 1) / nth; b < end;) {
        const int64_t row = b / d->blocks, first = b % d->blocks, last = end - row * d->blocks < d->blocks ? end - row * d->blocks : d->blocks;
        const char * from = (const char *) x->data + row % x->n * x->nb1 + row / x->n * x->nb2;
        convert_blocks(d, (const float *) from, to + row * d->size, first, last);
        b += last - first;
    }
}
