// How the threads of a node share its work.
#pragma once

#include "dots.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { CACHE_LINE = 64 };

// A counter that shares its cache line with no other.
struct team_counter {
    _Alignas(CACHE_LINE) atomic_int n;
};

// What the threads of a backend share. One serves all nodes, since a node begins when
// the one before has ended.
struct inkling_team {
    struct team_counter arrived, met;
    struct team_counter next; // chunk that nobody has taken

    char * work; // memory for one node, aligned to a cache line
    size_t size;

    enum inkling_vectors vectors; // kernels that are used
};

static inline void team_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

// Waits until all n threads are here. Then no chunk is taken.
static inline void team_meet(struct inkling_team * t, int n) {
    const int met = atomic_load_explicit(&t->met.n, memory_order_acquire);
    if (atomic_fetch_add(&t->arrived.n, 1) == n - 1) {
        atomic_store(&t->arrived.n, 0);
        atomic_store(&t->next.n, 0);
        atomic_fetch_add(&t->met.n, 1);
        return;
    }
    while (atomic_load_explicit(&t->met.n, memory_order_acquire) == met) team_relax();
}

enum { TEAM_LEAST_ROWS = 16, TEAM_MOST_ROWS = 512 };

// How many of some rows of weights of a size a thread takes at once to multiply them by
// n others, a multiple of TEAM_LEAST_ROWS. For a few others memory is what is waited for,
// which is read fastest in long runs: pieces of 10 KB gave a quarter of the rate of pieces
// of 300 KB. For many it is the cache that a piece should stay in.
static inline int64_t team_chunk(int64_t rows, size_t row_size, int64_t n, int n_threads) {
    const int64_t bytes = n <= DOTS_ROWS ? 256 << 10 : 32 << 10;
    int64_t chunk = bytes / (int64_t) row_size;
    if (n_threads > 1 && chunk > rows / (4 * n_threads)) chunk = rows / (4 * n_threads); // some for each
    chunk = chunk / TEAM_LEAST_ROWS * TEAM_LEAST_ROWS;
    return chunk < TEAM_LEAST_ROWS ? TEAM_LEAST_ROWS : chunk > TEAM_MOST_ROWS ? TEAM_MOST_ROWS : chunk;
}

// A chunk that nobody has taken since the threads met.
static inline int64_t team_take(struct inkling_team * t) { return atomic_fetch_add_explicit(&t->next.n, 1, memory_order_relaxed); }
