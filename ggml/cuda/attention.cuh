// Attention with a bias by distance that each query head has of its own (binding/op,
// Attention): score(i, p) = q_i·k_p·scale + r_i·proj[d], d = position of i - p, without
// the bias where d >= extent; seen are the keys with 0 <= d < window. Query head h reads
// kv head h/G, G = n_head/n_head_kv.
#pragma once

#include "fused.cuh"

extern const inkling_fused_op inkling_band_attention;
extern const inkling_fused_op inkling_band_prefill;
