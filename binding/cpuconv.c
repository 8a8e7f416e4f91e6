#include "cpuops.h"

#include <string.h>

enum { MAX_KERNEL = 16 }; // MaxTableKernel of cpuops.go

// y[c] = Σ_j w[c][j]·rows[j][c] for the channels from first to end-1.
static inline __attribute__((always_inline)) void convolve(int k, float * restrict y, const float * const * rows, const float * restrict w, int64_t first, int64_t end) {
    for (int64_t c = first; c < end; c++) {
        float sum = 0;
        for (int j = 0; j < k; j++) sum += w[c * k + j] * rows[j][c];
        y[c] = sum;
    }
}

// The sizes that models have, written out so that the compiler makes vectors of them.
static void convolve_4(float * restrict y, const float * const * rows, const float * restrict w, int64_t first, int64_t end) {
    const float * restrict a = rows[0], * restrict b = rows[1], * restrict c = rows[2], * restrict d = rows[3];
    for (int64_t i = first; i < end; i++) y[i] = w[4 * i] * a[i] + w[4 * i + 1] * b[i] + w[4 * i + 2] * c[i] + w[4 * i + 3] * d[i];
}

// A row of the table; row 0 for a number that is none, as in a graph that is only timed.
static float * row_of(const struct ggml_tensor * table, int64_t i) {
    if (i < 0 || i >= table->ne[1]) i = 0;
    return (float *) ((char *) table->data + i * table->nb[1]);
}

void inkling_compute_table_conv(struct ggml_tensor * dst, int ith, int nth, void * userdata) {
    (void) userdata;
    const struct ggml_tensor * x = dst->src[0], * w = dst->src[1], * table = dst->src[2], * read = dst->src[3], * write = dst->src[4];
    const int64_t channels = x->ne[0], n = x->ne[1], n_seq = x->ne[2];
    const int k = (int) w->ne[0];
    const int64_t reads = read->ne[0] / n_seq, writes = write->ne[0] / n_seq;
    // Threads share the channels, so that each reads and overwrites its own part of the table.
    const int64_t line = 16, lines = (channels + line - 1) / line;
    const int64_t first = lines * ith / nth * line, end = ith + 1 == nth ? channels : lines * (ith + 1) / nth * line;
    if (first >= end) return;
    for (int64_t s = 0; s < n_seq; s++) {
        const float * rows[MAX_KERNEL]; // that the current one needs, itself the last
        for (int j = 0; j < k - 1; j++) rows[j] = row_of(table, ((const int32_t *) read->data)[s * reads + j]);
        const char * in = (const char *) x->data + s * x->nb[2];
        char * out = (char *) dst->data + s * dst->nb[2];
        for (int64_t t = 0; t < n; t++) {
            rows[k - 1] = (const float *) (in + t * x->nb[1]);
            float * y = (float *) (out + t * dst->nb[1]);
            if (k == 4) convolve_4(y, rows, (const float *) w->data, first, end);
            else convolve(k, y, rows, (const float *) w->data, first, end);
            memmove(rows, rows + 1, (k - 1) * sizeof(rows[0]));
        }
        for (int64_t j = 0; j < writes; j++) {
            const float * from = (const float *) (in + (n - writes + j) * x->nb[1]);
            memcpy(row_of(table, ((const int64_t *) write->data)[s * writes + j]) + first, from + first, (end - first) * sizeof(float));
        }
    }
}

struct ggml_tensor * inkling_table_conv(struct ggml_context * ctx, struct ggml_tensor * x, struct ggml_tensor * w,
    struct ggml_tensor * table, struct ggml_tensor * read, struct ggml_tensor * write) {
    struct ggml_tensor * src[] = { x, w, table, read, write };
    return inkling_cpu_node(ggml_new_tensor(ctx, GGML_TYPE_F32, 4, x->ne), inkling_compute_table_conv, NULL, 0, src, 5);
}
