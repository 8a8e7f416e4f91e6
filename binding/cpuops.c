#include "bridge.h"
#include "cpuops.h"
#include "products.h"

#include <string.h>

struct ggml_tensor * inkling_cpu_node(struct ggml_tensor * result, ggml_custom_op_t f, const int32_t * args, int n_args,
    struct ggml_tensor ** src, int n_src) {
    struct inkling_op_params p = { .fun = (void *) f, .n_tasks = GGML_N_TASKS_MAX };
    if (n_args > 0) memcpy(p.args, args, n_args * sizeof(int32_t));
    memcpy(result->op_params, &p, sizeof(p));
    result->op = GGML_OP_CUSTOM;
    for (int i = 0; i < n_src; i++) result->src[i] = src[i];
    return result;
}

bool inkling_cpu_computes(const struct ggml_tensor * t) {
    struct inkling_op_params p;
    memcpy(&p, t->op_params, sizeof(p));
    return p.fun != NULL;
}

const char * inkling_cpu_op_name(const struct ggml_tensor * t) {
    struct inkling_op_params p;
    memcpy(&p, t->op_params, sizeof(p));
    if (t->op != GGML_OP_CUSTOM) return NULL;
    if (p.fun == (void *) inkling_compute_band_softmax) return "BAND_SOFT_MAX";
    if (p.fun == (void *) inkling_compute_table_conv) return "TABLE_CONV";
    if (p.fun == (void *) inkling_compute_product) return "PRODUCT";
    if (p.fun == (void *) inkling_compute_experts) return "EXPERTS";
    return NULL;
}
