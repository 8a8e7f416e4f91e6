#include "experts.h"

#include "ggml-cpu.h"

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

// ggml's own way is a node for each product, for the activation and for each part of
// the weighted sum: 8 to 14 barriers a layer, and rows that are fetched when they are
// multiplied. Here the threads meet three times, and the row after next is on its way.

enum { line = 64, gate_rows = 8, down_rows = 32 }; // bytes; rows that a thread takes at once

// A counter that shares its cache line with no other.
struct counter {
    atomic_int n;
    char rest[line - sizeof(atomic_int)];
};

struct experts_state {
    struct counter arrived, met;
    struct counter next; // chunk that nobody has taken
};

size_t inkling_experts_state_size(void) { return sizeof(struct experts_state); }

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

// Waits until all threads are here. Then no chunk is taken.
static void meet(struct experts_state * s, int n_threads) {
    int met = atomic_load_explicit(&s->met.n, memory_order_acquire);
    if (atomic_fetch_add(&s->arrived.n, 1) == n_threads - 1) {
        atomic_store(&s->arrived.n, 0);
        atomic_store(&s->next.n, 0);
        atomic_fetch_add(&s->met.n, 1);
        return;
    }
    while (atomic_load_explicit(&s->met.n, memory_order_acquire) == met) relax();
}

// A matrix of a bank and how its rows are multiplied.
struct bank {
    const struct ggml_tensor * t;
    ggml_vec_dot_t dot;
    ggml_from_float_t convert; // the other operand's type, from F32
    enum ggml_type operand;
    size_t operand_size;       // bytes of a converted row
};

static struct bank bank_of(const struct ggml_tensor * t) {
    const struct ggml_type_traits_cpu * traits = ggml_get_type_traits_cpu(t->type);
    struct bank b = { t, traits->vec_dot, ggml_get_type_traits_cpu(traits->vec_dot_type)->from_float, traits->vec_dot_type,
                      ggml_row_size(traits->vec_dot_type, t->ne[0]) };
    return b;
}

static inline const char * row_of(const struct bank * b, int32_t expert, int64_t row) {
    return (const char *) b->t->data + expert * b->t->nb[2] + row * b->t->nb[1];
}

// Multiplies a row, and fetches the one after next of n.
static inline float multiply(const struct bank * b, int32_t expert, int64_t row, int64_t n, const void * operand) {
    const char * at = row_of(b, expert, row);
    if (row + 2 < n) {
        const char * ahead = at + 2 * b->t->nb[1];
        for (size_t i = 0; i < b->t->nb[1]; i += line) __builtin_prefetch(ahead + i, 0, 2);
    }
    float y;
    b->dot((int) b->t->ne[0], &y, 0, at, 0, operand, 0, 1);
    return y;
}

// Converts the thread's part of n values, which lie in rows of the bank's operand.
static void convert(const struct bank * b, const float * x, char * to, int64_t n, int ith, int nth) {
    const int64_t size = ggml_blck_size(b->operand), blocks = n / size;
    const int64_t begin = blocks * ith / nth, end = blocks * (ith + 1) / nth;
    if (begin < end) b->convert(x + begin * size, to + begin * ggml_type_size(b->operand), (end - begin) * size);
}

// Where things lie behind the result, in bytes from its begin.
struct layout { size_t x, up_x, h, operands, end; };

static size_t padded(size_t n) { return (n + line - 1) / line * line; }

static struct layout layout_of(const struct bank * gate, const struct bank * up, const struct bank * down, int64_t used) {
    struct layout l;
    l.x        = padded(down->t->ne[1] * sizeof(float));
    l.up_x     = gate->operand == up->operand ? l.x : l.x + padded(gate->operand_size);
    l.h        = l.up_x + padded(up->operand_size);
    l.operands = l.h + padded(used * down->t->ne[0] * sizeof(float));
    l.end      = l.operands + padded(used * down->operand_size);
    return l;
}

static void compute_experts(struct ggml_tensor * dst, int ith, int nth, void * state) {
    struct experts_state * s = state;
    const struct bank gate = bank_of(dst->src[0]), up = bank_of(dst->src[1]), down = bank_of(dst->src[2]);
    const float * x       = dst->src[3]->data;
    const int32_t * ids   = dst->src[4]->data;
    const float * weights = dst->src[5]->data;
    const int64_t used = dst->src[4]->ne[0], embd = gate.t->ne[0], ff = gate.t->ne[1];
    const struct layout l = layout_of(&gate, &up, &down, used);
    char * base = dst->data;
    float * h = (float *) (base + l.h);

    convert(&gate, x, base + l.x, embd, ith, nth);
    if (l.up_x != l.x) convert(&up, x, base + l.up_x, embd, ith, nth);
    meet(s, nth);

    const int64_t per_expert = (ff + gate_rows - 1) / gate_rows;
    for (int64_t c; (c = atomic_fetch_add_explicit(&s->next.n, 1, memory_order_relaxed)) < used * per_expert;) {
        const int64_t k = c / per_expert, begin = c % per_expert * gate_rows, end = begin + gate_rows < ff ? begin + gate_rows : ff;
        for (int64_t r = begin; r < end; r++) {
            const float g = multiply(&gate, ids[k], r, ff, base + l.x), u = multiply(&up, ids[k], r, ff, base + l.up_x);
            h[k * ff + r] = g / (1.0f + expf(-g)) * u;
        }
    }
    meet(s, nth);

    convert(&down, h, base + l.operands, used * ff, ith, nth);
    meet(s, nth);

    float * out = dst->data;
    for (int64_t c; (c = atomic_fetch_add_explicit(&s->next.n, 1, memory_order_relaxed)) * down_rows < embd;) {
        const int64_t begin = c * down_rows, end = begin + down_rows < embd ? begin + down_rows : embd;
        float sums[down_rows] = { 0 };
        for (int64_t k = 0; k < used; k++) {
            for (int64_t r = begin; r < end; r++) sums[r - begin] += weights[k] * multiply(&down, ids[k], r, embd, base + l.operands + k * down.operand_size);
        }
        for (int64_t r = begin; r < end; r++) out[r] = sums[r - begin];
    }
}

struct ggml_tensor * inkling_experts(struct ggml_context * ctx, struct ggml_tensor * gate, struct ggml_tensor * up, struct ggml_tensor * down,
                                     struct ggml_tensor * x, struct ggml_tensor * ids, struct ggml_tensor * weights, void * state) {
    const struct bank g = bank_of(gate), u = bank_of(up), d = bank_of(down);
    const struct layout l = layout_of(&g, &u, &d, ids->ne[0]);
    struct ggml_tensor * args[] = { gate, up, down, x, ids, weights };
    return ggml_custom_4d(ctx, GGML_TYPE_F32, (int64_t) (l.end / sizeof(float)), 1, 1, 1, args, 6, compute_experts, GGML_N_TASKS_MAX, state);
}
