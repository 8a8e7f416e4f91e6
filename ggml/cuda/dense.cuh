// Products of quantised weights with as many rows that decoding the weights to F16 once, and
// cuBLAS, is faster than decoding them in each tile of a matrix kernel.
#pragma once

#include "fused.cuh"

// dst = src0·src1, if the device, the types and the shapes are such; false: nothing was done.
bool inkling_dense(ggml_backend_cuda_context & ctx, const ggml_tensor * src0, const ggml_tensor * src1, ggml_tensor * dst);

extern const inkling_fused_op inkling_dense_products; // of several weights with the same rows
