#include "readback.h"

#include <stdlib.h>

struct inkling_window * inkling_window_new(ggml_backend_t be, size_t half) {
    ggml_backend_buffer_type_t type = ggml_backend_dev_host_buffer_type(ggml_backend_get_device(be));
    if (type == NULL) {
        return NULL;
    }
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(type, 2*half);
    if (buffer == NULL) {
        return NULL;
    }
    struct inkling_window * w = malloc(sizeof(*w));
    if (w == NULL) {
        ggml_backend_buffer_free(buffer);
        return NULL;
    }
    *w = (struct inkling_window) { buffer, ggml_backend_buffer_get_base(buffer), half };
    return w;
}

void inkling_window_free(struct inkling_window * w) {
    if (w != NULL) {
        ggml_backend_buffer_free(w->buffer);
        free(w);
    }
}

bool inkling_lies_on(const struct ggml_tensor * t, ggml_backend_t be) {
    ggml_backend_buffer_t buffer = t->view_src != NULL ? t->view_src->buffer : t->buffer;
    return buffer != NULL && ggml_backend_buffer_get_type(buffer) == ggml_backend_get_default_buffer_type(be);
}

void inkling_window_fetch(struct inkling_window * w, ggml_backend_t be, const struct ggml_tensor * t, int half, size_t from, size_t n) {
    ggml_backend_tensor_get_async(be, t, w->base + half*w->half, from, n);
}
