// Operations of this project that the CPU computes: one node in place of several of
// ggml's, each of which costs the threads a barrier. The compositions in package op
// are what they are tested against, and what other devices compute.
#pragma once

#include "ggml.h"

// softmax(scores·scale + bias) over the keys that each query sees, 0 for all others:
// see Graph.BandSoftMax for the operands. Of type F32 the result overwrites scores;
// of F16 it has memory of its own, and scores holds nothing of use afterwards.
struct ggml_tensor * inkling_band_softmax(struct ggml_context * ctx, enum ggml_type type, struct ggml_tensor * scores,
    struct ggml_tensor * r, struct ggml_tensor * band, struct ggml_tensor * spans, float scale, int32_t skip);

// A causal convolution of each channel with its past, which lies in a table: see
// Graph.TableConv for the operands.
struct ggml_tensor * inkling_table_conv(struct ggml_context * ctx, struct ggml_tensor * x, struct ggml_tensor * w,
    struct ggml_tensor * table, struct ggml_tensor * read, struct ggml_tensor * write);

// The kernels of these nodes, for thread ith of nth.
void inkling_compute_band_softmax(struct ggml_tensor * dst, int ith, int nth, void * userdata);
void inkling_compute_table_conv(struct ggml_tensor * dst, int ith, int nth, void * userdata);

// Makes result a node over sources that all threads compute by f.
struct ggml_tensor * inkling_cpu_node(struct ggml_tensor * result, ggml_custom_op_t f, const int32_t * args, int n_args,
    struct ggml_tensor ** src, int n_src);

// Whether a node of GGML_OP_CUSTOM has a kernel for the CPU.
bool inkling_cpu_computes(const struct ggml_tensor * t);

// The name of the operation of a node made by one of these functions, NULL of others.
const char * inkling_cpu_op_name(const struct ggml_tensor * t);
