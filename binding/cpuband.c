#include "bridge.h"
#include "cpuops.h"
#include "cpuvec.h"

#include "ggml-cpu.h"

#include <math.h>

// ROWS scores of one query are taken together: they share the loads of the band.
#define ROWS 4

enum { MAX_SPANS = 2 };

// A run of columns that a query sees, of which those from near on have a bias.
struct span {
    int64_t first, n;
    int64_t near; // relative to first, n if none has
    int64_t band; // the element of the band that belongs to it
};

// Cuts what stands in the operands down to what lies within the row: in a graph that
// is only timed they hold anything.
static int read_spans(const int32_t * in, int64_t skip, int64_t n_kv, int64_t extent, struct span * out) {
    int n = 0;
    int64_t end = 0; // of the span before
    for (int i = 0; i < MAX_SPANS; i++, in += 3) {
        int64_t first = in[0] - skip, len = in[1], distance = in[2]; // of the first column
        if (first < end || first >= n_kv || distance < 0) continue;
        if (len > n_kv - first) len = n_kv - first;
        if (len > distance + 1) len = distance + 1;
        if (len <= 0) continue;
        int64_t near = distance - (extent - 1) > 0 ? distance - (extent - 1) : 0;
        out[n++] = (struct span){ first, len, near < len ? near : len, extent - 1 - distance + near };
        end = first + len;
    }
    return n;
}

// s[c]·scale for n columns, and the highest of them.
static void scaled(float * s, int64_t n, float scale, float * top) {
    vec high = vec_all(*top);
    int64_t c = 0;
    for (; c + VEC <= n; c += VEC) {
        vec x = vec_load(s + c) * scale;
        high = vec_max(high, x);
        vec_store(s + c, x);
    }
    *top = vec_highest(high);
    for (; c < n; c++) {
        s[c] *= scale;
        *top = s[c] > *top ? s[c] : *top;
    }
}

// The columns c to c+VEC-1 of rows rows, with bias.
INLINE void biased_columns(int rows, vec * x, float * const * s, const float * const * r, const float * band, int64_t extent, int64_t d_rel, float scale, int64_t c) {
    for (int i = 0; i < rows; i++) x[i] = vec_load(s[i] + c) * scale;
    for (int64_t m = 0; m < d_rel; m++) {
        vec b = vec_load(band + m * extent + c);
        for (int i = 0; i < rows; i++) x[i] += b * r[i][m];
    }
}

// s[i][c]·scale + Σ_m r[i][m]·band[m][c] for n columns of rows rows, and the highest of each row.
//
// What is left over by whole vectors are the first columns, computed before anything
// is overwritten, so that the vector that they begin may reach over what follows.
INLINE void biased(int rows, float * const * s, const float * const * r, const float * band, int64_t extent, int64_t d_rel, int64_t n, float scale, float * top) {
    if (n < VEC) {
        for (int i = 0; i < rows; i++) {
            for (int64_t c = 0; c < n; c++) {
                float x = s[i][c] * scale;
                for (int64_t m = 0; m < d_rel; m++) x += band[m * extent + c] * r[i][m];
                s[i][c] = x;
                top[i] = x > top[i] ? x : top[i];
            }
        }
        return;
    }
    int64_t rest = n % VEC;
    vec high[ROWS], head[ROWS];
    biased_columns(rows, head, s, r, band, extent, d_rel, scale, 0);
    for (int i = 0; i < rows; i++) high[i] = head[i];
    int64_t c = rest;
    for (; c + 2 * VEC <= n; c += 2 * VEC) {
        vec x[ROWS], y[ROWS];
        for (int i = 0; i < rows; i++) {
            x[i] = vec_load(s[i] + c) * scale;
            y[i] = vec_load(s[i] + c + VEC) * scale;
        }
        for (int64_t m = 0; m < d_rel; m++) {
            const float * b = band + m * extent + c;
            vec bx = vec_load(b), by = vec_load(b + VEC);
            for (int i = 0; i < rows; i++) {
                x[i] += bx * r[i][m];
                y[i] += by * r[i][m];
            }
        }
        for (int i = 0; i < rows; i++) {
            vec_store(s[i] + c, x[i]);
            vec_store(s[i] + c + VEC, y[i]);
            high[i] = vec_max(high[i], vec_max(x[i], y[i]));
        }
    }
    for (; c < n; c += VEC) {
        vec x[ROWS];
        biased_columns(rows, x, s, r, band, extent, d_rel, scale, c);
        for (int i = 0; i < rows; i++) {
            vec_store(s[i] + c, x[i]);
            high[i] = vec_max(high[i], x[i]);
        }
    }
    for (int i = 0; i < rows; i++) {
        memcpy(s[i], &head[i], rest * sizeof(float));
        float h = vec_highest(high[i]);
        top[i] = h > top[i] ? h : top[i];
    }
}

static void biased_many(float * const * s, const float * const * r, const float * band, int64_t extent, int64_t d_rel, int64_t n, float scale, float * top) {
    biased(ROWS, s, r, band, extent, d_rel, n, scale, top);
}

static void biased_one(float * const * s, const float * const * r, const float * band, int64_t extent, int64_t d_rel, int64_t n, float scale, float * top) {
    biased(1, s, r, band, extent, d_rel, n, scale, top);
}

// s[c] = exp(s[c] - top), and the sum.
static float exponentials(float * s, int64_t n, float top) {
    vec sum = vec_all(0);
    int64_t c = 0;
    for (; c + VEC <= n; c += VEC) {
        vec e = vec_exp(vec_load(s + c) - top);
        sum += e;
        vec_store(s + c, e);
    }
    float total = vec_sum(sum);
    if (c < n) {
        vec x = vec_all(top - 87.0f);
        memcpy(&x, s + c, (n - c) * sizeof(float));
        x = vec_exp(x - top);
        memcpy(s + c, &x, (n - c) * sizeof(float));
        for (int64_t i = c; i < n; i++) total += s[i];
    }
    return total;
}

static void multiply(float * s, int64_t n, float by) {
    int64_t c = 0;
    for (; c + VEC <= n; c += VEC) vec_store(s + c, vec_load(s + c) * by);
    for (; c < n; c++) s[c] *= by;
}

// Writes a row of probabilities: s holds the scores, dst is s itself or a row of F16.
static void probabilities(float * s, void * dst, enum ggml_type type, int64_t n_kv, const struct span * spans, int n, float top) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += exponentials(s + spans[i].first, spans[i].n, top);
    float by = sum == 0 ? 0 : 1 / sum;
    size_t size = ggml_type_size(type);
    int64_t end = 0;
    for (int i = 0; i <= n; i++) {
        int64_t first = i < n ? spans[i].first : n_kv;
        memset((char *) dst + end * size, 0, (first - end) * size);
        if (i == n) break;
        multiply(s + first, spans[i].n, by);
        if (type == GGML_TYPE_F16) ggml_cpu_fp32_to_fp16(s + first, (ggml_fp16_t *) dst + first, spans[i].n);
        end = first + spans[i].n;
    }
}

void inkling_compute_band_softmax(struct ggml_tensor * dst, int ith, int nth, void * userdata) {
    (void) userdata;
    const struct ggml_tensor * scores = dst->src[0], * r = dst->src[1], * band = dst->src[2], * spans = dst->src[3];
    struct inkling_op_params p;
    memcpy(&p, dst->op_params, sizeof(p));
    float scale;
    memcpy(&scale, &p.args[0], sizeof(scale));
    const int64_t skip = p.args[1];
    const int64_t n_kv = scores->ne[0], d_rel = r->ne[0], n_head = r->ne[1], n_q = r->ne[2], n_seq = r->ne[3], extent = band->ne[0];
    const int64_t G = scores->ne[1], n_head_kv = n_head / G;

    const int64_t groups = (n_head + ROWS - 1) / ROWS, units = n_seq * n_q * groups;
    for (int64_t u = units * ith / nth; u < units * (ith + 1) / nth; u++) {
        const int64_t h0 = u % groups * ROWS, q = u / groups % n_q, seq = u / groups / n_q;
        const int rows = n_head - h0 < ROWS ? (int) (n_head - h0) : ROWS;
        struct span seen[MAX_SPANS];
        const int n = read_spans((const int32_t *) ((const char *) spans->data + q * spans->nb[2] + seq * spans->nb[3]), skip, n_kv, extent, seen);
        float * s[ROWS];
        const float * rr[ROWS];
        float top[ROWS];
        size_t at[ROWS]; // in elements
        for (int i = 0; i < rows; i++) {
            const int64_t h = h0 + i;
            const size_t off = h % G * scores->nb[1] + q * scores->nb[2] + (h / G + n_head_kv * seq) * scores->nb[3];
            at[i] = off / sizeof(float);
            s[i] = (float *) ((char *) scores->data + off);
            rr[i] = (const float *) ((const char *) r->data + h * r->nb[1] + q * r->nb[2] + seq * r->nb[3]);
            top[i] = -INFINITY;
        }
        for (int j = 0; j < n; j++) {
            const struct span * a = &seen[j];
            const float * b = (const float *) band->data + a->band;
            float * near[ROWS];
            for (int i = 0; i < rows; i++) {
                scaled(s[i] + a->first, a->near, scale, &top[i]);
                near[i] = s[i] + a->first + a->near;
            }
            if (rows == ROWS) {
                biased_many(near, rr, b, extent, d_rel, a->n - a->near, scale, top);
            } else {
                for (int i = 0; i < rows; i++) biased_one(near + i, rr + i, b, extent, d_rel, a->n - a->near, scale, top + i);
            }
        }
        for (int i = 0; i < rows; i++) {
            probabilities(s[i], (char *) dst->data + at[i] * ggml_type_size(dst->type), dst->type, n_kv, seen, n, top[i]);
        }
    }
}

struct ggml_tensor * inkling_band_softmax(struct ggml_context * ctx, enum ggml_type type, struct ggml_tensor * scores,
    struct ggml_tensor * r, struct ggml_tensor * band, struct ggml_tensor * spans, float scale, int32_t skip) {
    struct ggml_tensor * result = type == GGML_TYPE_F32 ? ggml_view_tensor(ctx, scores) : ggml_new_tensor(ctx, type, 4, scores->ne);
    struct ggml_tensor * src[] = { scores, r, band, spans };
    int32_t args[2] = { 0, skip };
    memcpy(&args[0], &scale, sizeof(scale));
    return inkling_cpu_node(result, inkling_compute_band_softmax, args, 2, src, 4);
}
