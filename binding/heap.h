// C's heap, which ggml takes graphs, caches and results from.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Makes malloc map blocks of 128 KiB and more from the system, and give them back when
// they are freed, for good. By itself glibc raises that size, up to 32 MiB, to that of
// every mapped block that is freed: caches and results then lie in the heaps of threads,
// eight for a processor, which keep the most that they ever held. Blocks of this size are
// asked for seldom, since graphs keep their memory (graphMemory): to map them is slow. A
// size that the environment sets stays. Nothing happens with another libc.
void inkling_heap_return_blocks(void);

// The bytes that malloc has from the system, and those of them that are in use. False if
// this libc does not say.
bool inkling_heap_bytes(size_t * held, size_t * used);
