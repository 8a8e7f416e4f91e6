// Results come back from a device through memory that it writes directly: into
// ordinary memory it copies at a fifth of the speed.
#pragma once

#include "ggml-backend.h"

struct inkling_window {
    ggml_backend_buffer_t buffer; // pinned, two halves
    char *                base;
    size_t                half;
};

// Pinned memory of be's device; NULL if it has none.
struct inkling_window * inkling_window_new(ggml_backend_t be, size_t half);
void inkling_window_free(struct inkling_window * w);

// Whether t lies in be's own memory.
bool inkling_lies_on(const struct ggml_tensor * t, ggml_backend_t be);

// Begins to copy n bytes of t, which lies in be's memory, into a half of w; they are there when be is synchronised.
void inkling_window_fetch(struct inkling_window * w, ggml_backend_t be, const struct ggml_tensor * t, int half, size_t from, size_t n);
