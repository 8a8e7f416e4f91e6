// Products of 16-bit tiles on tensor cores, by the names that PTX has for them
// (ISA 8.0, section 9.7.13: mma.m16n8k16, ldmatrix, movmatrix), and copies to
// shared memory that do not wait. sm_80 and later.
//
// Of a fragment a lane L holds, two neighbouring columns in one register:
//
//	a [16 x 16]  a[0], a[1]: rows L/4 and L/4+8, columns 2(L%4), +1;  a[2], a[3]: columns +8
//	b [16 x 8]   b[0], b[1]: rows 2(L%4), +1, and +8; column L/4
//	c [16 x 8]   c[0], c[1]: row L/4, columns 2(L%4), +1;  c[2], c[3]: row L/4+8
#pragma once

#include <cuda_fp16.h>
#include <stdint.h>

namespace inkling {

static __device__ __forceinline__ unsigned shared_address(const void * p) {
    return (unsigned) __cvta_generic_to_shared(p);
}

// 16 bytes, or as many zeros.
static __device__ __forceinline__ void copy16(void * to, const void * from, bool valid) {
    const int n = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(shared_address(to)), "l"(from), "r"(n) : "memory");
}

static __device__ __forceinline__ void copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all but the n groups committed last have arrived.
template <int n> static __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory");
}

// Four 8 x 8 tiles; lanes 8i to 8i+7 give the addresses in shared memory of the rows of
// tile i.
static __device__ __forceinline__ void load_tiles(uint32_t (&x)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(row) : "memory");
}

static __device__ __forceinline__ void load_tiles_transposed(uint32_t (&x)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(row) : "memory");
}

// An 8 x 8 tile held as c fragments are becomes one held as b fragments are.
static __device__ __forceinline__ uint32_t transposed_tile(uint32_t x) {
    uint32_t y;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// c += a·b
static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ uint32_t packed(float x, float y) {
    const half2 h = __floats2half2_rn(x, y);
    return *(const uint32_t *) &h;
}

// x and y as the sum of two F16 values each: 22 bits in all.
static __device__ __forceinline__ void split(float x, float y, uint32_t & high, uint32_t & low) {
    const half2 h = __floats2half2_rn(x, y);
    const float2 f = __half22float2(h);
    high = *(const uint32_t *) &h;
    low = packed(x - f.x, y - f.y);
}

} // namespace inkling
