#include "products.h"

#include "dots.h"
#include "team.h"

bool inkling_multiplies(const struct inkling_team * team, enum ggml_type type, int64_t k) { return inkling_dots_of(team->vectors, type, k).kernels != NULL; }

// One chunk of rows of weights times all rows of x.
static void multiply_chunk(const struct inkling_dots * d, const char * w, size_t w_stride, int64_t m, const char * x, int64_t n, float * y, int64_t y_stride) {
    for (int64_t first = 0; first < n; first += DOTS_ROWS) {
        const int rows = n - first < DOTS_ROWS ? (int) (n - first) : DOTS_ROWS;
        const char * operands[DOTS_ROWS];
        for (int r = 0; r < rows; r++) operands[r] = x + (first + r) * d->size;
        inkling_dots(d, w, w_stride, m, operands, rows, y + first * y_stride, y_stride);
    }
}

void inkling_compute_product(struct ggml_tensor * dst, int ith, int nth, void * shared) {
    struct inkling_team * team = shared;
    const struct ggml_tensor * w = dst->src[0], * x = dst->src[1];
    const int64_t m = w->ne[1], n = x->ne[1], batches = x->ne[2], repeat = x->ne[2] / w->ne[2];
    const struct inkling_dots d = inkling_dots_of(team->vectors, w->type, w->ne[0]);
    char * operands = team->work;

    const struct inkling_rows rows_of_x = { x->data, n, x->nb[1], x->nb[2] };
    inkling_dots_convert(&d, &rows_of_x, n * batches, operands, ith, nth);
    team_meet(team, nth);

    const int64_t chunk = team_chunk(m * batches, w->nb[1], n, nth), chunks = (m + chunk - 1) / chunk;
    for (int64_t c; (c = team_take(team)) < chunks * batches;) {
        const int64_t batch = c / chunks, first = c % chunks * chunk, rows = m - first < chunk ? m - first : chunk;
        const char * at = (const char *) w->data + batch / repeat * w->nb[2] + first * w->nb[1];
        float * y = (float *) dst->data + batch * n * m + first;
        multiply_chunk(&d, at, w->nb[1], rows, operands + batch * n * d.size, n, y, m);
    }
}

size_t inkling_product_work(const struct inkling_team * team, const struct ggml_tensor * w, const struct ggml_tensor * x) {
    return x->ne[1] * x->ne[2] * inkling_dots_of(team->vectors, w->type, w->ne[0]).size;
}

struct ggml_tensor * inkling_product(struct ggml_context * ctx, struct ggml_tensor * w, struct ggml_tensor * x, struct inkling_team * team) {
    struct ggml_tensor * args[] = { w, x };
    return ggml_custom_4d(ctx, GGML_TYPE_F32, w->ne[1], x->ne[1], x->ne[2], 1, args, 2, inkling_compute_product, GGML_N_TASKS_MAX, team);
}
