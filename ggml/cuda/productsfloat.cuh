// Products of few rows with weights of F32, F16 and BF16, in f32.
#pragma once

#include "launch.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

static inline bool inkling_is_float(ggml_type type) {
    return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

struct inkling_float_args {
    const void  * w;   // [k, rows]
    const float * x;   // [k, n]
    float       * dst; // [.., n], stride floats from column to column
    int k, rows, n, stride;
};

// 8 neighbouring weights as floats.
static __device__ __forceinline__ void inkling_eight(const float * w, float (&v)[8]) {
    const float4 a = ((const float4 *) w)[0], b = ((const float4 *) w)[1];
    v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
    v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
}

static __device__ __forceinline__ void inkling_eight(const half * w, float (&v)[8]) {
    const uint4 a = *(const uint4 *) w;
    const uint32_t words[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 f = __half22float2(*(const half2 *) &words[i]);
        v[2*i]     = f.x;
        v[2*i + 1] = f.y;
    }
}

static __device__ __forceinline__ void inkling_eight(const nv_bfloat16 * w, float (&v)[8]) {
    const uint4 a = *(const uint4 *) w;
    const uint32_t words[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[2*i]     = __uint_as_float(words[i] << 16);
        v[2*i + 1] = __uint_as_float(words[i] & 0xFFFF0000);
    }
}

constexpr int INKLING_FLOAT_THREADS = 256;

// R rows a block of 8 warps, whose threads read 8 neighbouring weights of each at a
// time: a column of x that is read serves R rows. The first EARLY of these are read
// before x is there. k is a multiple of 8.
template <typename W, int R, int N, int EARLY>
static __global__ void __launch_bounds__(INKLING_FLOAT_THREADS) inkling_float_kernel(const inkling_float_args a) {
    constexpr int step = 8*INKLING_FLOAT_THREADS;
    const int row0 = blockIdx.x*R;
    const auto read = [&](float (&w)[R][8], const int i) {
#pragma unroll
        for (int r = 0; r < R; r++) { // the last row again where there is none
            inkling_eight((const W *) a.w + int64_t(min(row0 + r, a.rows - 1))*a.k + i, w[r]);
        }
    };
    float acc[R][N] = {{0.0f}};
    const auto add = [&](const float (&w)[R][8], const int i) {
#pragma unroll
        for (int c = 0; c < N; c++) {
            if (c < a.n) {
                float x[8];
                inkling_eight(a.x + int64_t(c)*a.k + i, x);
#pragma unroll
                for (int r = 0; r < R; r++) {
#pragma unroll
                    for (int e = 0; e < 8; e++) {
                        acc[r][c] += w[r][e]*x[e];
                    }
                }
            }
        }
    };

    int i = 8*threadIdx.x;
    float early[EARLY][R][8];
#pragma unroll
    for (int j = 0; j < EARLY; j++) {
        if (i + j*step < a.k) {
            read(early[j], i + j*step);
        }
    }
    inkling_wait();
    inkling_release();
#pragma unroll
    for (int j = 0; j < EARLY; j++, i += step) {
        if (i < a.k) {
            add(early[j], i);
        }
    }
    for (; i < a.k; i += step) {
        float w[R][8];
        read(w, i);
        add(w, i);
    }

    constexpr int warps = INKLING_FLOAT_THREADS/WARP_SIZE;
    __shared__ float parts[warps][R*N];
    const int warp = threadIdx.x/WARP_SIZE;
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
        for (int c = 0; c < N; c++) {
            const float sum = warp_reduce_sum<WARP_SIZE>(acc[r][c]);
            if (threadIdx.x % WARP_SIZE == 0) {
                parts[warp][r*N + c] = sum;
            }
        }
    }
    __syncthreads();
    if (threadIdx.x < R*N) {
        const int r = threadIdx.x/N, c = threadIdx.x % N;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < warps; i++) {
            sum += parts[i][threadIdx.x];
        }
        if (row0 + r < a.rows && c < a.n) {
            a.dst[int64_t(c)*a.stride + row0 + r] = sum;
        }
    }
}

template <typename W, int N>
static void inkling_launch_float_of(ggml_backend_cuda_context & ctx, const inkling_float_args & a, int sms) {
    constexpr int R = 4;
    if (a.rows < 2*R*sms) { // few rows, as a router has: a block each
        inkling_launch(ctx, inkling_float_kernel<W, 1, N, 2>, a.rows, INKLING_FLOAT_THREADS, 0, 1, a);
    } else {
        inkling_launch(ctx, inkling_float_kernel<W, R, N, 1>, (a.rows + R - 1)/R, INKLING_FLOAT_THREADS, 0, 1, a);
    }
}

template <typename W>
static void inkling_launch_float_type(ggml_backend_cuda_context & ctx, const inkling_float_args & a, int sms) {
    if (a.n == 1) {
        inkling_launch_float_of<W, 1>(ctx, a, sms);
    } else if (a.n <= 4) {
        inkling_launch_float_of<W, 4>(ctx, a, sms);
    } else {
        inkling_launch_float_of<W, 8>(ctx, a, sms);
    }
}

static void inkling_launch_float(ggml_backend_cuda_context & ctx, const inkling_float_args & a, ggml_type type, int sms) {
    switch (type) {
        case GGML_TYPE_F32:  inkling_launch_float_type<float>(ctx, a, sms); break;
        case GGML_TYPE_F16:  inkling_launch_float_type<half>(ctx, a, sms); break;
        case GGML_TYPE_BF16: inkling_launch_float_type<nv_bfloat16>(ctx, a, sms); break;
        default: GGML_ABORT("not a float type");
    }
}

#endif
