// Products of four warps at once on Hopper's tensor cores, which run beside the warps' own
// instructions (PTX ISA 8.0, section 9.7.15: wgmma). Only code for sm_90a has them: there
// INKLING_WGMMA is defined.
//
// a [64 x 16] is in registers, 16 rows a warp, and c [64 x 8n] too, as in mma16.cuh. b [16 x 8n] is in
// shared memory, 64 values of a column next to each other, chunks of 16 bytes swizzled:
//
//	chunk i of column c is at 128 c + 16 (i xor c mod 8), from a multiple of 1024 on
#pragma once

#include "mma16.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define INKLING_WGMMA

namespace inkling {

// Copies that have arrived are seen by products behind the next barrier.
static __device__ __forceinline__ void async_copied() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Registers that products use have their values.
static __device__ __forceinline__ void async_begin() {
    asm volatile("wgmma.fence.sync.aligned;");
}

static __device__ __forceinline__ void async_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;");
}

// Waits until all but the n groups committed last are done.
template <int n> static __device__ __forceinline__ void async_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(n));
}

// What has been waited for is not read before.
template <int n> static __device__ __forceinline__ void async_done(float (&c)[2][n][4]) {
#pragma unroll
    for (int i = 0; i < 2*n*4; i++) {
        asm volatile("" : "+f"(c[i/(4*n)][i/4 % n][i % 4]));
    }
}

// Names b at p for products; 16 bytes further the name is one more.
static __device__ __forceinline__ uint64_t async_matrix(const void * p) {
    constexpr uint64_t swizzled = uint64_t(1) << 62, of_8_columns = uint64_t(1024/16) << 32, unused = uint64_t(1) << 16;
    return swizzled | of_8_columns | unused | (shared_address(p) & 0x3FFFF) >> 4;
}

#define INKLING_C(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define INKLING_A    "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b)

// c += a·b; registers are free again, and c is there, when its group is done.
static __device__ __forceinline__ void multiply_async(float (&c)[4][4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19}, %20, 1, 1, 1, 0;"
        : INKLING_C(0), INKLING_C(1), INKLING_C(2), INKLING_C(3) : INKLING_A);
}

static __device__ __forceinline__ void multiply_async(float (&c)[8][4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
        : INKLING_C(0), INKLING_C(1), INKLING_C(2), INKLING_C(3), INKLING_C(4), INKLING_C(5), INKLING_C(6), INKLING_C(7) : INKLING_A);
}

#undef INKLING_C
#undef INKLING_A

} // namespace inkling

#endif
