// Launches in a chain. A decode step is hundreds of kernels of a few microseconds, of
// which the start of each costs one or two. On Hopper and later a kernel launched here
// is put on the multiprocessors while the one before it ends, and does what needs no
// result of it, such as reading weights, before inkling_wait.
//
// What inkling_wait waits for is the end of the kernel before, whose own wait was for
// the one before that: so all that is older is complete as well, also before the wait,
// as long as every kernel of a chain waits, and calls inkling_release, if it does,
// after that. Elsewhere both are nothing, and the launch an ordinary one.
#pragma once

#include "fused.cuh"

// All before it in the stream is complete and visible.
static __device__ __forceinline__ void inkling_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The next kernel of the chain may be put beside this one, once all blocks say so or
// have ended.
static __device__ __forceinline__ void inkling_release() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Whether the device and the code that runs on it know chains and clusters.
static inline bool inkling_is_hopper(int device) {
    const int cc = ggml_cuda_info().devices[device].cc;
    return GGML_CUDA_CC_IS_NVIDIA(cc) && ggml_cuda_highest_compiled_arch(cc) >= 900;
}

// A launch that takes its turn in the chain; of Hopper alone the blocks of a row of the
// grid can be a cluster.
template <typename... P>
static void inkling_launch(ggml_backend_cuda_context & ctx, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, int cluster, P... args) {
    cudaLaunchConfig_t config = {};
    config.gridDim          = grid;
    config.blockDim         = block;
    config.dynamicSmemBytes = shared;
    config.stream           = ctx.stream();
    cudaLaunchAttribute attrs[2] = {};
    config.attrs = attrs;
    static const bool chained = getenv("INKLING_CHAIN") != nullptr; // measured before it is kept
    if (chained && inkling_is_hopper(ctx.device)) {
        auto & chain = attrs[config.numAttrs++];
        chain.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        chain.val.programmaticStreamSerializationAllowed = 1;
    }
    if (cluster > 1) {
        auto & blocks = attrs[config.numAttrs++];
        blocks.id = cudaLaunchAttributeClusterDimension;
        blocks.val.clusterDim.x = cluster;
        blocks.val.clusterDim.y = 1;
        blocks.val.clusterDim.z = 1;
    }
    CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, args...));
}
