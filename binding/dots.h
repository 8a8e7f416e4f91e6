// Rows of weights times a few rows of other operands, on the CPU.
//
// ggml multiplies one row by one and unpacks quantised weights anew each time. The
// kernels here unpack a block once for up to DOTS_ROWS rows, with AVX2 or AVX-512 VNNI;
// for all other types and CPUs ggml's are called row by row. What a row gives does not
// depend on the rows beside it.
#pragma once

#include "ggml.h"
#include "ggml-cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DOTS_ROWS = 4, DOTS_ALIGN = 64 }; // most rows at once; bytes that operands are aligned to

// y[r*y_stride + i] = the product of row i of k weights, which lie stride bytes apart, and the operand x[r],
// for i < m and as many operands as the kernel is for.
typedef void (*inkling_dots_kernel)(int64_t k, const void * w, size_t stride, int64_t m, const char * const * x, float * y, int64_t y_stride);

// Converts blocks of F32 values to those of an operand of k values. x is its begin.
typedef void (*inkling_dots_convert_blocks)(int64_t k, const float * x, char * to, int64_t begin, int64_t end);

// How rows of k weights of a type are multiplied.
struct inkling_dots {
    int64_t k;
    int64_t blocks; // of an operand, which can be converted one by one
    size_t  size;   // bytes from one operand to the next, a multiple of DOTS_ALIGN

    inkling_dots_convert_blocks convert; // of this project's kernels, NULL for ggml's
    const inkling_dots_kernel * kernels; // for 1 to DOTS_ROWS rows

    ggml_vec_dot_t    dot;     // of ggml's
    ggml_from_float_t from_float;
    enum ggml_type    operand; // type of the operand
};

// Instructions that there are kernels for, each with those before.
enum inkling_vectors { VECTORS_NONE, VECTORS_AVX2, VECTORS_AVX512_VNNI };

// What this CPU has.
enum inkling_vectors inkling_vectors(void);

struct inkling_dots inkling_dots_of(enum inkling_vectors vectors, enum ggml_type type, int64_t k);

// Whether operands of a serve for b too.
bool inkling_dots_same_operand(const struct inkling_dots * a, const struct inkling_dots * b);

// Rows of F32: row r lies r%n*nb1 + r/n*nb2 bytes behind data.
struct inkling_rows {
    const void * data;
    int64_t n;
    size_t nb1, nb2;
};

// Converts the part of thread ith of nth of some rows to operands, which lie d->size bytes
// apart. A row may be cut between threads.
void inkling_dots_convert(const struct inkling_dots * d, const struct inkling_rows * x, int64_t rows, char * to, int ith, int nth);

// y[r*y_stride + i] = the product of row i of weights, which lie stride bytes apart, and the operand x[r],
// for i < m and r < n <= DOTS_ROWS.
static inline void inkling_dots(const struct inkling_dots * d, const void * w, size_t stride, int64_t m, const char * const * x, int n, float * y, int64_t y_stride) {
    if (d->kernels) {
        d->kernels[n - 1](d->k, w, stride, m, x, y, y_stride);
        return;
    }
    for (int64_t i = 0; i < m; i++) {
        for (int r = 0; r < n; r++) d->dot((int) d->k, &y[r * y_stride + i], 0, (const char *) w + i * stride, 0, x[r], 0, 1);
    }
}

// Sets d to kernels with these instructions. False if there are none for the type.
bool inkling_dots_avx512(struct inkling_dots * d, enum ggml_type type);
bool inkling_dots_avx2(struct inkling_dots * d, enum ggml_type type);
