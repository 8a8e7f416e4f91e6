#include "products.h"

#include "cpuvec.h"
#include "dots.h"
#include "team.h"

#include <string.h>

// ggml's own way is a node for each product, for the activation and for each part of
// the weighted sum: 8 to 14 barriers a layer, and rows that are fetched when they are
// multiplied. Here the threads meet three times, rows that chose the same expert share
// its reading.

static size_t padded(size_t n) { return (n + DOTS_ALIGN - 1) / DOTS_ALIGN * DOTS_ALIGN; }

// The operands of a node and what its threads hand to each other. A slot is one of the n_used
// experts of one row, number row*n_used + k.
struct call {
    const struct ggml_tensor * gate, * up, * down, * x;
    const struct ggml_tensor * ids, * weights; // may be NULL
    struct inkling_dots gate_dots, up_dots, down_dots;
    int64_t n, used, experts, embd, ff;

    char    * gate_x, * up_x; // operands of each row
    float   * h;              // [ff] of each slot
    char    * down_x;         // operands of each slot
    int32_t * slots;          // by experts
    int32_t * chosen;         // experts that have slots, in order
    int32_t * first;          // where the slots of the chosen begin, and their end
    int32_t * n_chosen;
    char    * end;
};

static char * take(char ** at, size_t n) {
    char * p = *at;
    *at += padded(n);
    return p;
}

// Lays out the memory of a call, which begins at base.
static void lay_out(struct call * c, char * base) {
    char * at = base;
    const int64_t slots = c->n * c->used;
    c->gate_x   = take(&at, c->n * c->gate_dots.size);
    c->up_x     = inkling_dots_same_operand(&c->gate_dots, &c->up_dots) ? c->gate_x : take(&at, c->n * c->up_dots.size);
    c->h        = (float *) take(&at, slots * c->ff * sizeof(float));
    c->down_x   = take(&at, slots * c->down_dots.size);
    c->slots    = (int32_t *) take(&at, slots * sizeof(int32_t));
    c->chosen   = (int32_t *) take(&at, c->experts * sizeof(int32_t));
    c->first    = (int32_t *) take(&at, (c->experts + 1) * sizeof(int32_t));
    c->n_chosen = (int32_t *) take(&at, sizeof(int32_t));
    c->end      = at;
}

static struct call call_of(const struct inkling_team * team, const struct ggml_tensor * gate, const struct ggml_tensor * up, const struct ggml_tensor * down,
                           const struct ggml_tensor * x, const struct ggml_tensor * ids, const struct ggml_tensor * weights, char * base) {
    struct call c = { .gate = gate, .up = up, .down = down, .x = x, .ids = ids, .weights = weights };
    c.n = x->ne[1], c.experts = gate->ne[2], c.used = ids ? ids->ne[0] : c.experts;
    c.embd = gate->ne[0], c.ff = gate->ne[1];
    c.gate_dots = inkling_dots_of(team->vectors, gate->type, c.embd);
    c.up_dots   = inkling_dots_of(team->vectors, up->type, c.embd);
    c.down_dots = inkling_dots_of(team->vectors, down->type, c.ff);
    lay_out(&c, base);
    return c;
}

// The expert of a slot; 0 for a number that is none, as in a graph that is only timed.
static int32_t expert_of(const struct call * c, int64_t slot) {
    if (!c->ids) return (int32_t) (slot % c->used);
    const char * row = (const char *) c->ids->data + slot / c->used * c->ids->nb[1];
    const int32_t e = ((const int32_t *) row)[slot % c->used];
    return e < 0 || e >= c->experts ? 0 : e;
}

static float weight_of(const struct call * c, int64_t slot) {
    if (!c->weights) return 1;
    const char * row = (const char *) c->weights->data + slot / c->used * c->weights->nb[1];
    return ((const float *) row)[slot % c->used];
}

// Sorts the slots by experts.
static void sort_slots(struct call * c) {
    const int64_t slots = c->n * c->used;
    int32_t * count = c->chosen; // until it has the experts
    memset(count, 0, c->experts * sizeof(int32_t));
    for (int64_t s = 0; s < slots; s++) count[expert_of(c, s)]++;
    int32_t n = 0, at = 0;
    for (int32_t e = 0; e < c->experts; e++) { // first: by expert, where its next slot goes
        c->first[e] = at;
        at += count[e];
    }
    for (int64_t s = 0; s < slots; s++) c->slots[c->first[expert_of(c, s)]++] = (int32_t) s;
    at = 0;
    for (int32_t e = 0; e < c->experts; e++) {
        const int32_t here = count[e]; // chosen[n] and first[n], n <= e, may be overwritten now
        if (here == 0) continue;
        c->chosen[n] = e, c->first[n] = at;
        at += here, n++;
    }
    c->first[n] = at;
    *c->n_chosen = n;
}

static const char * row_of(const struct ggml_tensor * t, int32_t expert, int64_t row) {
    return (const char *) t->data + expert * t->nb[2] + row * t->nb[1];
}

// silu(g)·u of n values, a multiple of TEAM_LEAST_ROWS.
static void activate(const float * g, const float * u, float * h, int64_t n) {
    for (int64_t i = 0; i < n; i += VEC) {
        const vec x = vec_load(g + i), below = vec_choose(x < 0, x, -x), e = vec_exp(below); // exp(-|x|)
        vec_store(h + i, x * vec_choose(x < 0, e, vec_all(1)) / (e + 1) * vec_load(u + i));
    }
}

// h of at most TEAM_MOST_ROWS rows of the k-th chosen expert: silu(gate x)·up x.
static void gate_chunk(const struct call * c, int32_t k, int64_t begin, int64_t end) {
    const int32_t expert = c->chosen[k];
    for (int32_t s = c->first[k]; s < c->first[k + 1]; s += DOTS_ROWS) {
        const int rows = c->first[k + 1] - s < DOTS_ROWS ? c->first[k + 1] - s : DOTS_ROWS;
        const char * gate_x[DOTS_ROWS], * up_x[DOTS_ROWS];
        for (int r = 0; r < rows; r++) {
            gate_x[r] = c->gate_x + c->slots[s + r] / c->used * c->gate_dots.size;
            up_x[r]   = c->up_x + c->slots[s + r] / c->used * c->up_dots.size;
        }
        float g[DOTS_ROWS][TEAM_MOST_ROWS], u[DOTS_ROWS][TEAM_MOST_ROWS], h[TEAM_MOST_ROWS];
        const int64_t whole = (end - begin + TEAM_LEAST_ROWS - 1) / TEAM_LEAST_ROWS * TEAM_LEAST_ROWS;
        inkling_dots(&c->gate_dots, row_of(c->gate, expert, begin), c->gate->nb[1], end - begin, gate_x, rows, g[0], TEAM_MOST_ROWS);
        inkling_dots(&c->up_dots, row_of(c->up, expert, begin), c->up->nb[1], end - begin, up_x, rows, u[0], TEAM_MOST_ROWS);
        for (int r = 0; r < rows; r++) {
            for (int64_t i = end - begin; i < whole; i++) g[r][i] = u[r][i] = 0;
            activate(g[r], u[r], h, whole);
            memcpy(c->h + c->slots[s + r] * c->ff + begin, h, (end - begin) * sizeof(float));
        }
    }
}

// Some columns of all results, by one thread: experts are added in their order.
static void down_chunk(const struct call * c, float * out, int64_t begin, int64_t end) {
    for (int64_t row = 0; row < c->n; row++) memset(out + row * c->embd + begin, 0, (end - begin) * sizeof(float));
    for (int32_t k = 0; k < *c->n_chosen; k++) {
        for (int32_t s = c->first[k]; s < c->first[k + 1]; s += DOTS_ROWS) {
            const int rows = c->first[k + 1] - s < DOTS_ROWS ? c->first[k + 1] - s : DOTS_ROWS;
            const char * x[DOTS_ROWS];
            float * to[DOTS_ROWS], weight[DOTS_ROWS];
            for (int r = 0; r < rows; r++) {
                const int32_t slot = c->slots[s + r];
                x[r]      = c->down_x + slot * c->down_dots.size;
                to[r]     = out + slot / c->used * c->embd;
                weight[r] = weight_of(c, slot);
            }
            float y[DOTS_ROWS][TEAM_MOST_ROWS];
            inkling_dots(&c->down_dots, row_of(c->down, c->chosen[k], begin), c->down->nb[1], end - begin, x, rows, y[0], TEAM_MOST_ROWS);
            for (int r = 0; r < rows; r++) {
                for (int64_t i = begin; i < end; i++) to[r][i] += weight[r] * y[r][i - begin];
            }
        }
    }
}

void inkling_compute_experts(struct ggml_tensor * dst, int ith, int nth, void * shared) {
    struct inkling_team * team = shared;
    struct ggml_tensor ** src = dst->src;
    struct call c = call_of(team, src[0], src[1], src[2], src[3], src[4], src[5], team->work);
    if (ith == 0) sort_slots(&c);
    const struct inkling_rows x = { c.x->data, c.n, c.x->nb[1], 0 };
    inkling_dots_convert(&c.gate_dots, &x, c.n, c.gate_x, ith, nth);
    if (c.up_x != c.gate_x) inkling_dots_convert(&c.up_dots, &x, c.n, c.up_x, ith, nth);
    team_meet(team, nth);

    const int64_t gate_rows = team_chunk(c.ff * *c.n_chosen, c.gate->nb[1], c.n, nth), per_expert = (c.ff + gate_rows - 1) / gate_rows;
    for (int64_t i; (i = team_take(team)) < *c.n_chosen * per_expert;) {
        const int64_t begin = i % per_expert * gate_rows, end = begin + gate_rows < c.ff ? begin + gate_rows : c.ff;
        gate_chunk(&c, (int32_t) (i / per_expert), begin, end);
    }
    team_meet(team, nth);

    const struct inkling_rows h = { c.h, c.n * c.used, c.ff * sizeof(float), 0 };
    inkling_dots_convert(&c.down_dots, &h, c.n * c.used, c.down_x, ith, nth);
    team_meet(team, nth);

    const int64_t down_rows = team_chunk(c.embd, c.down->nb[1], c.n, nth);
    for (int64_t i; (i = team_take(team)) * down_rows < c.embd;) {
        const int64_t begin = i * down_rows, end = begin + down_rows < c.embd ? begin + down_rows : c.embd;
        down_chunk(&c, dst->data, begin, end);
    }
}

size_t inkling_experts_work(const struct inkling_team * team, const struct ggml_tensor * gate, const struct ggml_tensor * up,
                            const struct ggml_tensor * down, const struct ggml_tensor * x, const struct ggml_tensor * ids) {
    return (size_t) call_of(team, gate, up, down, x, ids, NULL, NULL).end;
}

struct ggml_tensor * inkling_experts(struct ggml_context * ctx, struct ggml_tensor * gate, struct ggml_tensor * up, struct ggml_tensor * down,
                                     struct ggml_tensor * x, struct ggml_tensor * ids, struct ggml_tensor * weights, struct inkling_team * team) {
    struct ggml_tensor * args[] = { gate, up, down, x, ids, weights };
    return ggml_custom_4d(ctx, GGML_TYPE_F32, gate->ne[0], x->ne[1], 1, 1, args, 6, inkling_compute_experts, GGML_N_TASKS_MAX, team);
}
