#include "bridge.h"
#include "_cgo_export.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <string.h>

static int log_min_level;

// While a module starts its messages are kept here instead.
static char * kept_log;
static size_t kept_size;

static void log_to_go(enum ggml_log_level level, const char * text, void * user_data) {
    (void) user_data;
    static enum ggml_log_level last = GGML_LOG_LEVEL_INFO;
    if (level == GGML_LOG_LEVEL_CONT) level = last; // the rest of the line before
    last = level;
    if (kept_log != NULL && log_min_level >= GGML_LOG_LEVEL_WARN) {
        if (level >= GGML_LOG_LEVEL_WARN) snprintf(kept_log, kept_size, "%s", text);
        return;
    }
    if ((int) level >= log_min_level) inklingLog((int) level, (char *) text);
}

static void abort_to_go(const char * text) { inklingLog(GGML_LOG_LEVEL_ERROR, (char *) text); }

void inkling_log_start(int min_level) {
    log_min_level = min_level;
    ggml_log_set(log_to_go, NULL);
    ggml_set_abort_callback(abort_to_go);
}

// The library's own ggml-base shares no state with ours, unless it is ours.
static void log_from_module(void) {
    void * base = dlopen("libggml-base.so.0", RTLD_NOW | RTLD_NOLOAD);
    if (base == NULL) return;
    void (*log_set)(ggml_log_callback, void *) = dlsym(base, "ggml_log_set");
    ggml_abort_callback_t (*abort_set)(ggml_abort_callback_t) = dlsym(base, "ggml_set_abort_callback");
    if (log_set != NULL) log_set(log_to_go, NULL);
    if (abort_set != NULL) abort_set(abort_to_go);
    dlclose(base);
}

ggml_backend_reg_t inkling_module_load(const char * path, char * reason, size_t size) {
    reason[0] = 0;
    void * module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        const char * why = dlerror();
        snprintf(reason, size, "%s", why != NULL ? why : "can not be opened");
        return NULL;
    }
    log_from_module();
    kept_log = reason;
    kept_size = size;
    ggml_backend_reg_t reg = ggml_backend_load(path);
    kept_log = NULL;
    if (reg == NULL && reason[0] == 0) snprintf(reason, size, "ggml does not take it");
    dlclose(module); // ggml holds it
    return reg;
}

ggml_backend_sched_t inkling_sched_new(ggml_backend_t * backends, int n, ggml_backend_buffer_type_t host, size_t size) {
    ggml_backend_buffer_type_t types[16];
    if (n > 16) return NULL;
    for (int i = 0; i < n; i++) types[i] = ggml_backend_get_default_buffer_type(backends[i]);
    if (host != NULL) types[n - 1] = host;
    return ggml_backend_sched_new(backends, types, n, size, false, true);
}

static ggml_backend_buffer_t buffer_of(const struct ggml_tensor * t) {
    return t->view_src != NULL ? t->view_src->buffer : t->buffer;
}

bool inkling_is_elsewhere(const struct ggml_tensor * t, ggml_backend_t backend) {
    ggml_backend_buffer_t buf = buffer_of(t);
    return buf != NULL && !ggml_backend_supports_buft(backend, ggml_backend_buffer_get_type(buf));
}

bool inkling_weight_is_elsewhere(const struct ggml_tensor * t, ggml_backend_t backend) {
    ggml_backend_buffer_t buf = buffer_of(t);
    return buf != NULL && ggml_backend_buffer_get_usage(buf) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS && inkling_is_elsewhere(t, backend);
}

ggml_backend_buffer_type_t inkling_buffer_type(const struct ggml_tensor * t) {
    ggml_backend_buffer_t buf = buffer_of(t);
    return buf != NULL ? ggml_backend_buffer_get_type(buf) : NULL;
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

int inkling_flag_get(int * flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED); }

bool inkling_graph_counts(ggml_backend_dev_t dev, int64_t counts[4]) {
    void (*get)(int64_t *) = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(dev), "inkling_cuda_graph_counts");
    if (get == NULL) return false;
    counts[0] = -4;
    get(counts);
    return true;
}

static_assert(sizeof(struct inkling_op_params) == GGML_MAX_OP_PARAMS, "as ggml/cuda/fused.cuh");

struct ggml_tensor * inkling_fused(struct ggml_context * ctx, int32_t id, const int32_t * args, int n_args,
    enum ggml_type type, const int64_t ne[4], struct ggml_tensor ** src, int n_src) {
    struct ggml_tensor * t = ggml_new_tensor(ctx, type, 4, ne);
    struct inkling_op_params p = { .n_tasks = 1, .magic = 0x6b6e69, .id = id };
    memcpy(p.args, args, n_args * sizeof(int32_t));
    memcpy(t->op_params, &p, sizeof(p));
    t->op = GGML_OP_CUSTOM;
    for (int i = 0; i < n_src; i++) t->src[i] = src[i];
    return t;
}

int inkling_fused_count(ggml_backend_dev_t dev) {
    int32_t (*count)(void) = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(dev), "inkling_fused_count");
    return count != NULL ? count() : 0;
}

struct ggml_tensor * inkling_bits(struct ggml_context * ctx, struct ggml_tensor * a, enum ggml_type type) {
    struct ggml_tensor * t = ggml_view_tensor(ctx, a);
    t->type = type;
    t->op = GGML_OP_VIEW;
    t->src[0] = a;
    return t;
}

bool inkling_pin(ggml_backend_dev_t dev, void * data, size_t size) {
    bool (*pin)(void *, size_t) = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(dev), "ggml_backend_register_host_buffer");
    return pin != NULL && pin(data, size);
}

void inkling_unpin(ggml_backend_dev_t dev, void * data) {
    void (*unpin)(void *) = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(dev), "ggml_backend_unregister_host_buffer");
    if (unpin != NULL) unpin(data);
}

void inkling_huge_pages(void * data, size_t size) {
#ifdef MADV_HUGEPAGE
    const uintptr_t page = 2u << 20;
    uintptr_t begin = ((uintptr_t) data + page - 1) / page * page, end = ((uintptr_t) data + size) / page * page;
    if (begin < end) madvise((void *) begin, end - begin, MADV_HUGEPAGE);
#else
    (void) data;
    (void) size;
#endif
}
