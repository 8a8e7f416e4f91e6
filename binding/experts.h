// The routed experts of one row as a single node of the CPU.
#pragma once

#include "ggml.h"

// What the threads of a node share: zeroed memory of inkling_experts_state_size bytes,
// which lives as long as the graph.
size_t inkling_experts_state_size(void);

// sum_k weights[k] * down_k(silu(gate_k x) * up_k x) over the experts that ids names.
//
//   gate, up: [n_embd, n_ff, n_expert]   any type that the CPU multiplies by
//   down:     [n_ff, n_embd, n_expert]
//   x:        [n_embd]                   F32
//   ids:      [n_used]                   I32
//   weights:  [n_used]                   F32
//   res:      [n_embd + room]            F32: the result, and behind it what the threads hand to each other
struct ggml_tensor * inkling_experts(struct ggml_context * ctx, struct ggml_tensor * gate, struct ggml_tensor * up, struct ggml_tensor * down,
                                     struct ggml_tensor * x, struct ggml_tensor * ids, struct ggml_tensor * weights, void * state);
