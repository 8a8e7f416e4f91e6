// C's heap, which ggml takes graphs, caches and results from.
//
// There is one for all threads. By itself glibc makes up to eight for a processor, each
// of which keeps the most that it ever held. Go runs what builds graphs, which is done
// anew all the time, now on one thread and now on another, until all heaps have the room
// of all graphs. Few threads ask for C memory at the same time: they need not wait.
// A number of heaps that the environment sets (MALLOC_ARENA_MAX) stays. Nothing is done
// with another libc.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The bytes that malloc has from the system, and those of them that are in use. False if
// this libc does not say.
bool inkling_heap_bytes(size_t * held, size_t * used);
