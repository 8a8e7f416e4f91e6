// Products of the CPU as nodes of this project, for types that it has kernels for.
#pragma once

#include "dots.h"

#include <stdbool.h>
#include <stddef.h>

// What the threads of a backend share in these nodes.
struct inkling_team;
struct inkling_team * inkling_team_new(void); // NULL without memory
void inkling_team_free(struct inkling_team * team);

// Makes room for nodes that want size bytes of memory of their own. No graph may be
// computed meanwhile. False without memory.
bool inkling_team_reserve(struct inkling_team * team, size_t size);

// Kernels for which instructions nodes take: at first the best that the CPU has. Graphs that
// were made before a change may not be computed after it.
enum inkling_vectors inkling_team_vectors(const struct inkling_team * team);
void inkling_team_use(struct inkling_team * team, enum inkling_vectors vectors);

// Whether there is a kernel of this project for rows of k weights of a type.
bool inkling_multiplies(const struct inkling_team * team, enum ggml_type type, int64_t k);

// ggml_mul_mat of weights that inkling_multiplies.
//
//   w:   [k, m, x]
//   x:   [k, n, x*r]          F32, rows contiguous
//   res: [m, n, x*r]          F32
//
// The node wants inkling_product_work bytes of the team.
struct ggml_tensor * inkling_product(struct ggml_context * ctx, struct ggml_tensor * w, struct ggml_tensor * x, struct inkling_team * team);
size_t inkling_product_work(const struct inkling_team * team, const struct ggml_tensor * w, const struct ggml_tensor * x);

// Σ_k weights[k]·down_k(silu(gate_k x)·up_k x) over the experts that ids names for each row.
//
//   gate, up: [n_embd, n_ff, n_expert]   any type that the CPU multiplies by
//   down:     [n_ff, n_embd, n_expert]
//   x:        [n_embd, n]                F32, rows contiguous
//   ids:      [n_used, n]                I32, rows contiguous; NULL: each row uses all experts
//   weights:  [n_used, n]                F32, rows contiguous; NULL: all are 1
//   res:      [n_embd, n]                F32
//
// The node wants inkling_experts_work bytes of the team.
struct ggml_tensor * inkling_experts(struct ggml_context * ctx, struct ggml_tensor * gate, struct ggml_tensor * up, struct ggml_tensor * down,
                                     struct ggml_tensor * x, struct ggml_tensor * ids, struct ggml_tensor * weights, struct inkling_team * team);
size_t inkling_experts_work(const struct inkling_team * team, const struct ggml_tensor * gate, const struct ggml_tensor * up,
                            const struct ggml_tensor * down, const struct ggml_tensor * x, const struct ggml_tensor * ids);

// The kernels of these nodes.
void inkling_compute_product(struct ggml_tensor * dst, int ith, int nth, void * team);
void inkling_compute_experts(struct ggml_tensor * dst, int ith, int nth, void * team);
