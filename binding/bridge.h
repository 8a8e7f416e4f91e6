// What cgo can't express: callbacks, parameters passed as structs by value,
// and the few calls whose signature differs between the ggml trees we support.
#pragma once

#include "ggml.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"

// Sends ggml's log lines of at least min_level to the Go function inklingLog.
void inkling_log_start(int min_level);

// A context that holds tensor structs only, never data.
struct ggml_context * inkling_context_new(size_t n_tensors, size_t n_graph_nodes);

// A worker pool that keeps its threads between graphs.
struct ggml_threadpool * inkling_threadpool_new(int n_threads);

// The abort flag of a CPU backend: while *flag is not zero, a running graph
// stops at the next node with GGML_STATUS_ABORTED.
void inkling_cpu_set_abort_flag(ggml_backend_t backend, int * flag);
void inkling_flag_set(int * flag, int value);
