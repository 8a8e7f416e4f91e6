#include "heap.h"

#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__

#include <malloc.h>

// Before there are threads, which would have heaps by then.
__attribute__((constructor)) static void one_heap(void) {
    const char * tunables = getenv("GLIBC_TUNABLES");
    if (getenv("MALLOC_ARENA_MAX") != NULL) return;
    if (tunables != NULL && strstr(tunables, "glibc.malloc.arena_max") != NULL) return;
    mallopt(M_ARENA_MAX, 1);
}

bool inkling_heap_bytes(size_t * held, size_t * used) {
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
    *held = m.arena + m.hblkhd;
    *used = m.uordblks + m.hblkhd;
    return true;
#else
    (void) held;
    (void) used;
    return false; // mallinfo counts to 2 GiB
#endif
}

#else

bool inkling_heap_bytes(size_t * held, size_t * used) {
    (void) held;
    (void) used;
    return false;
}

#endif
