// How ggml's kernel for products with matrices (mmq.cuh) is cut where each row chooses
// experts. ggml takes tiles as wide as all rows, which one expert has only if every row
// chooses it: of 512 rows that choose 6 of 256 experts it computes 128 columns for 12.
#pragma once

#include <stdint.h>

// Columns of a tile, at most: the mean of rows that an expert gets and two standard
// deviations more, if they are chosen independently, rounded up to widths of the kernel.
int inkling_expert_columns(int64_t rows, int64_t experts, int granularity);

// Blocks of a kernel that each multiprocessor of this device holds, at least 1.
int inkling_blocks_held(const void * kernel, int threads, int shared);
