#include "bridge.h"
#include "_cgo_export.h"

static int log_min_level;

static void log_to_go(enum ggml_log_level level, const char * text, void * user_data) {
    (void) user_data;
    static enum ggml_log_level last = GGML_LOG_LEVEL_INFO;
    if (level == GGML_LOG_LEVEL_CONT) level = last; // the rest of the line before
    last = level;
    if ((int) level >= log_min_level) inklingLog((int) level, (char *) text);
}

void inkling_log_start(int min_level) {
    log_min_level = min_level;
    ggml_log_set(log_to_go, NULL);
}

struct ggml_context * inkling_context_new(size_t n_tensors, size_t n_graph_nodes) {
    size_t size = n_tensors * ggml_tensor_overhead();
    if (n_graph_nodes > 0) size += ggml_graph_overhead_custom(n_graph_nodes, false);
    struct ggml_init_params p = { size, NULL, true };
    return ggml_init(p);
}

struct ggml_threadpool * inkling_threadpool_new(int n_threads) {
    struct ggml_threadpool_params p = ggml_threadpool_params_default(n_threads);
    return ggml_threadpool_new(&p);
}

static bool abort_flag_is_set(void * data) { return __atomic_load_n((int *) data, __ATOMIC_RELAXED) != 0; }

void inkling_cpu_set_abort_flag(ggml_backend_t backend, int * flag) {
    ggml_backend_cpu_set_abort_callback(backend, abort_flag_is_set, flag);
}

void inkling_flag_set(int * flag, int value) { __atomic_store_n(flag, value, __ATOMIC_RELAXED); }
