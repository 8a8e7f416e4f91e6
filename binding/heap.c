#include "heap.h"

#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__

#include <malloc.h>

void inkling_heap_return_blocks(void) {
    const char * tunables = getenv("GLIBC_TUNABLES");
    if (getenv("MALLOC_MMAP_THRESHOLD_") != NULL) return;
    if (tunables != NULL && strstr(tunables, "glibc.malloc.mmap_threshold") != NULL) return;
    mallopt(M_MMAP_THRESHOLD, 128 << 10); // where it begins; being set, it stays
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

void inkling_heap_return_blocks(void) {}

bool inkling_heap_bytes(size_t * held, size_t * used) {
    (void) held;
    (void) used;
    return false;
}

#endif
