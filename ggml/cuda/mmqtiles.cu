#include "common.cuh"
#include "mmqtiles.cuh"

#include <algorithm>
#include <cmath>

int inkling_expert_columns(int64_t rows, int64_t experts, int granularity) {
    const double mean = (double) rows / (double) experts;
    const int columns = (int) std::min(std::ceil(mean + 2.0 * std::sqrt(mean)), 1024.0);
    const int step    = std::max(columns > 40 ? 16 : 8, granularity);
    return (columns + step - 1) / step * step;
}

int inkling_blocks_held(const void * kernel, int threads, int shared) {
    int n = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, threads, shared));
    return std::max(n, 1);
}
