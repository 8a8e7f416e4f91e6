// Operations of this project in the CUDA module. A graph holds one as a node of
// type GGML_OP_CUSTOM whose op_params name it (binding/fused.go): supports_op and
// the dispatcher of ggml-cuda.cu ask inkling_fused_supports and call inkling_fused
// (ggml/cmake/cuda.cmake puts that in). Each operation has a composition of ggml's
// own nodes that computes the same, in package binding/op: it is what other
// devices run, and what the tests compare with.
#pragma once

#include "common.cuh"
#include "launch.cuh"

// What binding writes into op_params of a node: ggml_custom_op_params first, then
// what is ours.
struct inkling_op_params {
    void *  fun;      // for the CPU; never called
    int32_t n_tasks;
    int32_t magic;    // INKLING_FUSED_MAGIC, in what is padding to ggml
    void *  userdata;
    int32_t id;
    int32_t args[9];  // integers, or the bits of floats
};
static_assert(sizeof(inkling_op_params) == GGML_MAX_OP_PARAMS, "as binding/bridge.h");

constexpr int32_t INKLING_FUSED_MAGIC = 0x6b6e69;

static inline const inkling_op_params & inkling_params(const ggml_tensor * node) {
    return *(const inkling_op_params *) node->op_params;
}

static inline float inkling_float(int32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

// An operation: whether there is a kernel for the types and shapes of node on
// device, and its launch. supports must refuse what compute would get wrong.
struct inkling_fused_op {
    int32_t id;
    bool (*supports)(int device, const ggml_tensor * node);
    void (*compute)(ggml_backend_cuda_context & ctx, ggml_tensor * node);
};

// Whether t is an operand of that type and shape, without gaps.
static inline bool inkling_is(const ggml_tensor * t, ggml_type type, int64_t ne0, int64_t ne1) {
    return t != nullptr && t->type == type && t->ne[0] == ne0 && t->ne[1] == ne1 && t->ne[2]*t->ne[3] == 1 && ggml_is_contiguous(t);
}

// Rows of t are contiguous and begin on whole elements, as in a view of some rows of a tensor.
static inline bool inkling_is_columns(const ggml_tensor * t, ggml_type type, int64_t ne0, int64_t n) {
    return t != nullptr && t->type == type && t->ne[0] == ne0 && t->ne[1] == n && t->ne[2]*t->ne[3] == 1 &&
        t->nb[0] == ggml_type_size(type) && t->nb[1] % t->nb[0] == 0;
}

static inline bool inkling_is_activation(const ggml_tensor * t) {
    return t->type == GGML_TYPE_F32 && ggml_is_contiguous(t) && t->view_offs % 16 == 0 && t->ne[3] == 1;
}

bool inkling_fused_supports(int device, const ggml_tensor * node);
void inkling_fused(ggml_backend_cuda_context & ctx, ggml_tensor * node);

// How many operations there are: exported by
// ggml_backend_reg_get_proc_address("inkling_fused_count").
int32_t inkling_fused_count();

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

// An id out of range, as an idle row may have, is expert 0: finite, and in memory.
static __device__ __forceinline__ int inkling_expert(const int id, const int experts) {
    return id >= 0 && id < experts ? id : 0;
}

// Whether the device, and the code that runs on it, are Hopper's or later.
static inline bool inkling_is_hopper(int device) {
    const int cc = ggml_cuda_info().devices[device].cc;
    return GGML_CUDA_CC_IS_NVIDIA(cc) && ggml_cuda_highest_compiled_arch(cc) >= 900;
}

// inkling_start on the device and the stream of ctx.
template <typename... P>
static void inkling_launch(ggml_backend_cuda_context & ctx, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, int cluster, P... args) {
    CUDA_CHECK(inkling_start(inkling_is_hopper(ctx.device), cluster, kernel, grid, block, shared, ctx.stream(), args...));
}
#endif
