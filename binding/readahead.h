// Experts that are mapped from a file larger than memory.
#pragma once

#include "ggml.h"
#include <stdint.h>

// What was chosen so far, and what of it was in memory, in bytes. Atomic.
struct inkling_reads { int64_t chosen, resident; };

// A node of the CPU that, as soon as ids are known, counts which pages of the chosen
// experts are in memory and asks the system to read the others.
//
//   ids:   [n_used, n]              I32
//   banks: n_banks of [.., .., n_expert], in mapped host memory
//   res:   [1]                      I32, that nobody reads
struct ggml_tensor * inkling_read_ahead(struct ggml_context * ctx, struct ggml_tensor * ids, struct ggml_tensor ** banks, int n_banks,
                                        struct inkling_reads * reads);

void inkling_reads_get(const struct inkling_reads * from, struct inkling_reads * to);
