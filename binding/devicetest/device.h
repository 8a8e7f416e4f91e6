// A device of ggml that is the CPU with memory of its own.
#pragma once

#include <stdint.h>

// What the device was asked for.
struct devicetest_counts {
    int64_t graphs; // that it computed
    int64_t reads;  // of its memory
    int64_t writes; // to its memory
    int64_t early;  // reads and writes of those while a graph waited to be computed
};

// Makes ggml list the device. It may be called again.
void devicetest_register(void);

// The numbers since the last call.
struct devicetest_counts devicetest_take(void);
