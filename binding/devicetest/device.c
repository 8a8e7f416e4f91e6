//go:build !ggml_dir

#include "device.h"

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, MOST_WAITING = 64 };

static struct ggml_backend_reg         registry;
static struct ggml_backend_device      device;
static struct ggml_backend_buffer_type memory;
static struct devicetest_counts        counts;

// Graphs that nobody has waited for, in order. There is one stream for all.
static struct ggml_cgraph * waiting[MOST_WAITING];
static int n_waiting;

static const char * name_of_memory(ggml_backend_buffer_type_t type) { (void) type; return "TEST"; }

static size_t alignment(ggml_backend_buffer_type_t type) { (void) type; return ALIGNMENT; }

static bool is_host(ggml_backend_buffer_type_t type) { (void) type; return false; }

static void buffer_free(ggml_backend_buffer_t b) { free(b->context); }

static void * buffer_base(ggml_backend_buffer_t b) { return b->context; }

static void buffer_clear(ggml_backend_buffer_t b, uint8_t value) { memset(b->context, value, b->size); }

static void tensor_fill(ggml_backend_buffer_t b, struct ggml_tensor * t, uint8_t value, size_t offset, size_t size) {
    (void) b;
    memset((char *) t->data + offset, value, size);
}

static void tensor_set(ggml_backend_buffer_t b, struct ggml_tensor * t, const void * data, size_t offset, size_t size) {
    (void) b;
    counts.writes++;
    counts.early += n_waiting > 0;
    memcpy((char *) t->data + offset, data, size);
}

static void tensor_get(ggml_backend_buffer_t b, const struct ggml_tensor * t, void * data, size_t offset, size_t size) {
    (void) b;
    counts.reads++;
    counts.early += n_waiting > 0;
    memcpy(data, (const char *) t->data + offset, size);
}

static ggml_backend_buffer_t buffer_new(ggml_backend_buffer_type_t type, size_t size) {
    const struct ggml_backend_buffer_i functions = {
        .free_buffer = buffer_free, .get_base = buffer_base, .memset_tensor = tensor_fill,
        .set_tensor = tensor_set, .get_tensor = tensor_get, .clear = buffer_clear,
    };
    void * data = aligned_alloc(ALIGNMENT, size / ALIGNMENT * ALIGNMENT + ALIGNMENT);
    return data != NULL ? ggml_backend_buffer_init(type, functions, data, size) : NULL;
}

static const char * backend_name(ggml_backend_t b) { (void) b; return "TEST0"; }

static void backend_wait(ggml_backend_t b) {
    for (int i = 0; i < n_waiting; i++) ggml_backend_graph_compute(b->context, waiting[i]);
    counts.graphs += n_waiting;
    n_waiting = 0;
}

static enum ggml_status backend_compute(ggml_backend_t b, struct ggml_cgraph * graph, int batch_size) {
    (void) batch_size;
    if (n_waiting == MOST_WAITING) backend_wait(b);
    waiting[n_waiting++] = graph;
    return GGML_STATUS_SUCCESS;
}

static void backend_free(ggml_backend_t b) {
    backend_wait(b);
    ggml_backend_free(b->context);
    free(b);
}

static ggml_backend_t backend_new(ggml_backend_dev_t dev, const char * params) {
    (void) params;
    static ggml_guid guid = "inkling devtest";
    ggml_backend_t b = calloc(1, sizeof(*b));
    if (b == NULL) return NULL;
    b->guid = &guid;
    b->device = dev;
    b->context = ggml_backend_cpu_init();
    b->iface = (struct ggml_backend_i) { .get_name = backend_name, .free = backend_free, .synchronize = backend_wait, .graph_compute = backend_compute };
    ggml_backend_cpu_set_n_threads(b->context, 1);
    return b;
}

static const char * device_name(ggml_backend_dev_t dev) { (void) dev; return "TEST0"; }

static void device_memory(ggml_backend_dev_t dev, size_t * free, size_t * total) {
    (void) dev;
    *free = *total = (size_t) 1 << 30;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t dev) { (void) dev; return GGML_BACKEND_DEVICE_TYPE_GPU; }

static void device_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props * props) {
    memset(props, 0, sizeof(*props));
    props->name = props->description = device_name(dev);
    props->type = device_type(dev);
    device_memory(dev, &props->memory_free, &props->memory_total);
    props->caps.async = true;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t dev) { (void) dev; return &memory; }

// Nodes of this project's kernels for the CPU are for the CPU.
static bool supports_op(ggml_backend_dev_t dev, const struct ggml_tensor * t) { (void) dev; return t->op != GGML_OP_CUSTOM; }

static bool supports_buffer_type(ggml_backend_dev_t dev, ggml_backend_buffer_type_t type) { (void) dev; return type == &memory; }

static const char * registry_name(ggml_backend_reg_t reg) { (void) reg; return "TEST"; }

static size_t registry_size(ggml_backend_reg_t reg) { (void) reg; return 1; }

static ggml_backend_dev_t registry_device(ggml_backend_reg_t reg, size_t i) { (void) reg; (void) i; return &device; }

void devicetest_register(void) {
    if (device.reg != NULL) return;
    memory.iface = (struct ggml_backend_buffer_type_i) { .get_name = name_of_memory, .alloc_buffer = buffer_new, .get_alignment = alignment, .is_host = is_host };
    memory.device = &device;
    device.iface = (struct ggml_backend_device_i) {
        .get_name = device_name, .get_description = device_name, .get_memory = device_memory, .get_type = device_type, .get_props = device_props,
        .init_backend = backend_new, .get_buffer_type = device_buffer_type, .supports_op = supports_op, .supports_buft = supports_buffer_type,
    };
    device.reg = &registry;
    registry.api_version = GGML_BACKEND_API_VERSION;
    registry.iface = (struct ggml_backend_reg_i) { registry_name, registry_size, registry_device, NULL };
    ggml_backend_register(&registry);
}

struct devicetest_counts devicetest_take(void) {
    struct devicetest_counts c = counts;
    memset(&counts, 0, sizeof(counts));
    return c;
}
