// Launches in a chain. A decode step is hundreds of kernels of a few microseconds, of
// which the start of each costs one or two. On Hopper and later a kernel launched here
// is put on the multiprocessors while the one before it ends, and does what needs no
// result of it, such as reading weights, before inkling_wait (programmatic dependent
// launch of CUDA).
//
// What inkling_wait waits for is the end of the kernel before, whose own wait was for
// the one before that: so all that is older is complete as well, also before the wait,
// as long as every kernel of a chain waits, and calls inkling_release, if it does,
// after that. Elsewhere both are nothing, and the launch an ordinary one.
#pragma once

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

#include <cuda_runtime.h>

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

// Launches kernel, in the chain if its code and the device are Hopper's or later. Of
// these alone the cluster blocks of a row of the grid can be a cluster; 1: none.
template <typename... P>
static cudaError_t inkling_start(bool hopper, int cluster, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream, P... args) {
    cudaLaunchConfig_t config = {};
    config.gridDim          = grid;
    config.blockDim         = block;
    config.dynamicSmemBytes = shared;
    config.stream           = stream;
    cudaLaunchAttribute attrs[2] = {};
    config.attrs = attrs;
#if CUDART_VERSION >= 12030 // before, graphs of such launches could not be recorded
    if (hopper) {
        auto & chain = attrs[config.numAttrs++];
        chain.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        chain.val.programmaticStreamSerializationAllowed = 1;
    }
#endif
    if (hopper && cluster > 1) {
        auto & blocks = attrs[config.numAttrs++];
        blocks.id = cudaLaunchAttributeClusterDimension;
        blocks.val.clusterDim.x = cluster;
        blocks.val.clusterDim.y = 1;
        blocks.val.clusterDim.z = 1;
    }
    return cudaLaunchKernelEx(&config, kernel, args...);
}
#endif
