// Blocks of a cluster read each other's shared memory: sm_90 and later (PTX ISA 8.0, mapa
// and barrier.cluster).
#pragma once

#include <stdint.h>

namespace inkling {

// All threads of the cluster come here, and see what each other wrote.
static __device__ __forceinline__ void cluster_sync() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __syncwarp(); // the barrier takes whole warps
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

// What block rank of the cluster has where this one has p, in shared memory.
template <typename T>
static __device__ __forceinline__ T cluster_load(const T * p, int rank) {
    T x = {};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    unsigned at = (unsigned) __cvta_generic_to_shared(p);
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(at), "r"(rank));
    float * const f = (float *) &x;
    if constexpr (sizeof(T) == 16) {
        asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3]) : "r"(at) : "memory");
    } else {
        static_assert(sizeof(T) == 8, "two or four floats");
        asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(f[0]), "=f"(f[1]) : "r"(at) : "memory");
    }
#endif
    return x;
}

} // namespace inkling
