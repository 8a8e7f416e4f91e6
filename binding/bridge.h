// What cgo can't express: callbacks, parameters passed as structs by value,
// and the few calls whose signature differs between the ggml trees we support.
#pragma once

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

// Sends ggml's log lines of at least min_level to the Go function inklingLog, and
// what it says before it aborts.
void inkling_log_start(int min_level);

// Opens the shared library of a GPU backend and registers its devices. The copy
// of ggml-base that it brings along logs as ours does, but not while it starts:
// reason gets the last warning, or why the library can not be used. NULL then.
ggml_backend_reg_t inkling_module_load(const char * path, char * reason, size_t size);

// What the CUDA module has done with graphs: replayed, recorded, run node by node,
// and launched in replays. False if the device is of another module, or of one that does not say.
bool inkling_graph_counts(ggml_backend_dev_t dev, int64_t counts[4]);

// Locks size bytes of host memory, page-aligned, so that the device copies from them
// at the full speed of its link. False if it has no such function, or refuses.
bool inkling_pin(ggml_backend_dev_t dev, void * data, size_t size);
void inkling_unpin(ggml_backend_dev_t dev, void * data);

// Asks the system for large pages: a hint.
void inkling_huge_pages(void * data, size_t size);

// A context that holds tensor structs only, never data.
struct ggml_context * inkling_context_new(size_t n_tensors, size_t n_graph_nodes);

// A scheduler over n backends, the CPU's last, for graphs of at most size nodes
// and leafs. Inputs lie in host, or in the CPU's memory if that is NULL.
ggml_backend_sched_t inkling_sched_new(ggml_backend_t * backends, int n, ggml_backend_buffer_type_t host, size_t size);

// Whether t, or the tensor that it is a view of, has memory that the backend can
// not read where it lies; and whether that is so of a weight.
bool inkling_is_elsewhere(const struct ggml_tensor * t, ggml_backend_t backend);
bool inkling_weight_is_elsewhere(const struct ggml_tensor * t, ggml_backend_t backend);

// The type of the memory that t lies in, NULL if it has none.
ggml_backend_buffer_type_t inkling_buffer_type(const struct ggml_tensor * t);

// A worker pool that keeps its threads between graphs.
struct ggml_threadpool * inkling_threadpool_new(int n_threads);

// The abort flag of a CPU backend: while *flag is not zero, a running graph
// stops at the next node with GGML_STATUS_ABORTED.
void inkling_cpu_set_abort_flag(ggml_backend_t backend, int * flag);
void inkling_flag_set(int * flag, int value);
int inkling_flag_get(int * flag);

// What names an operation of this project in a node's op_params: ggml/cuda/fused.cuh
// has the same.
struct inkling_op_params {
    void *  fun;
    int32_t n_tasks;
    int32_t magic;
    void *  userdata;
    int32_t id;
    int32_t args[9];
};

// A node of the operation id over n sources (at most GGML_MAX_SRC).
struct ggml_tensor * inkling_fused(struct ggml_context * ctx, int32_t id, const int32_t * args, int n_args,
    enum ggml_type type, const int64_t ne[4], struct ggml_tensor ** src, int n_src);

// How many of these operations the module of dev has: 0 if it is not ours.
int inkling_fused_count(ggml_backend_dev_t dev);

// A view of a contiguous tensor whose elements are read as those of another type of
// the same size.
struct ggml_tensor * inkling_bits(struct ggml_context * ctx, struct ggml_tensor * a, enum ggml_type type);
