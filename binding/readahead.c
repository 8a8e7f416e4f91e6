#define _DEFAULT_SOURCE // mincore
#include "readahead.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_experts = 4096, pages_at_once = 1024 };

#if defined(__APPLE__)
typedef char residency;
#else
typedef unsigned char residency;
#endif

// Counts an expert of a bank, and asks for what is missing.
static void want(const struct ggml_tensor * bank, int64_t expert, struct inkling_reads * reads) {
    const uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t) bank->data + expert * bank->nb[2], behind = first + bank->nb[2];
    const uintptr_t begin = first / page * page, end = (behind + page - 1) / page * page;
    int64_t resident = 0;
    for (uintptr_t at = begin; at < end; at += pages_at_once * page) {
        residency r[pages_at_once];
        const uintptr_t n = end - at < pages_at_once * page ? end - at : pages_at_once * page;
        if (mincore((void *) at, n, r) != 0) return; // not a mapping that can be asked
        for (uintptr_t i = 0; i < n / page; i++) resident += r[i] & 1;
    }
    __atomic_fetch_add(&reads->chosen, (int64_t) (end - begin), __ATOMIC_RELAXED);
    __atomic_fetch_add(&reads->resident, resident * (int64_t) page, __ATOMIC_RELAXED);
    if (resident < (int64_t) ((end - begin) / page)) madvise((void *) begin, end - begin, MADV_WILLNEED);
}

static void read_ahead(struct ggml_tensor * dst, int ith, int nth, void * reads) {
    const struct ggml_tensor * ids = dst->src[0];
    const int64_t experts = dst->src[1]->ne[2];
    bool seen[most_experts] = { false };
    int64_t turn = 0; // experts in the order of their first row, bank by bank: the order in which they are multiplied
    for (int bank = 1; bank < GGML_MAX_SRC && dst->src[bank] != NULL; bank++) {
        for (int64_t row = 0; row < ids->ne[1]; row++) {
            for (int64_t k = 0; k < ids->ne[0]; k++) {
                const int32_t id = *(const int32_t *) ((const char *) ids->data + row * ids->nb[1] + k * ids->nb[0]);
                if (id < 0 || id >= experts || seen[id] != (bank % 2 == 0)) continue;
                seen[id] = !seen[id];
                if (turn++ % nth == ith) want(dst->src[bank], id, reads);
            }
        }
    }
}

struct ggml_tensor * inkling_read_ahead(struct ggml_context * ctx, struct ggml_tensor * ids, struct ggml_tensor ** banks, int n_banks,
                                        struct inkling_reads * reads) {
    struct ggml_tensor * args[GGML_MAX_SRC] = { ids };
    if (n_banks >= GGML_MAX_SRC || banks[0]->ne[2] > most_experts) return NULL;
    for (int i = 0; i < n_banks; i++) args[i + 1] = banks[i];
    return ggml_custom_4d(ctx, GGML_TYPE_I32, 1, 1, 1, 1, args, n_banks + 1, read_ahead, GGML_N_TASKS_MAX, reads);
}

void inkling_reads_get(const struct inkling_reads * from, struct inkling_reads * to) {
    to->chosen   = __atomic_load_n(&from->chosen, __ATOMIC_RELAXED);
    to->resident = __atomic_load_n(&from->resident, __ATOMIC_RELAXED);
}
