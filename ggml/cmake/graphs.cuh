// Which ggml graphs are replayed as CUDA graphs: part of the CUDA module, put into
// ggml-cuda.cu by cuda.cmake in place of ggml's own rules, which
//
//   - give up on any graph with more than one row,
//   - remember one graph, so that two in turn are never replayed,
//   - and give up for good after four graphs in a row that were new.
//
// Here each graph has its own memory, is run as it is when it is seen first or has
// changed, recorded when it is seen again, and replayed from then on.
#pragma once

#include <atomic>

// How often a graph was replayed, recorded, and run node by node; and how many kernels,
// copies and fills all replays had.
static std::atomic<int64_t> inkling_graph_counts[4];

// Exported by ggml_backend_reg_get_proc_address("inkling_cuda_graph_counts"). The first
// of counts is minus their number; a program that does not say it has three.
static void inkling_cuda_graph_counts(int64_t * counts) {
    const int n = counts[0] == -4 ? 4 : 3;
    for (int i = 0; i < n; i++) {
        counts[i] = inkling_graph_counts[i].load();
    }
}

// The product with chosen experts asks the host which rows go to which expert,
// unless it has a kernel that finds out itself: as in ggml_cuda_mul_mat_id.
static bool inkling_asks_host(const ggml_tensor * node) {
    if (node->op != GGML_OP_MUL_MAT_ID || node->ne[2] == 1) {
        return false;
    }
    const ggml_tensor * w = node->src[0];
    const ggml_tensor * x = node->src[1];
    const int cc = ggml_cuda_info().devices[ggml_cuda_get_device()].cc;
    return !ggml_cuda_should_use_mmq(w->type, cc, x->ne[2]) &&
           !ggml_cuda_should_use_mmf(w->type, cc, WARP_SIZE, w->ne, w->nb, x->ne[2], /*mul_mat_id=*/true);
}

// What a graph is compared by has addresses, but not types: where memory is used again
// a weight or a cache of another type can lie at the same place. Addresses have 57 bits.
static void * inkling_operand(const ggml_tensor * t) {
    return (void *) (uintptr_t(t->data) ^ uintptr_t(t->type) << 57);
}

static bool check_node_graph_compatibility(ggml_cgraph * cgraph, int batch_size, bool use_cuda_graph) {
    for (int i = 0; use_cuda_graph && i < cgraph->n_nodes; i++) {
        const ggml_tensor * node = cgraph->nodes[i];
        const ggml_tensor * w    = node->src[0];
        use_cuda_graph = !inkling_asks_host(node) && !(w && w->buffer && ggml_backend_buft_is_cuda_split(w->buffer->buft));
    }
    GGML_UNUSED(batch_size);
    return use_cuda_graph;
}

// inkling_choose_graph makes the memory of cgraph the context's current one.
static void inkling_choose_graph(ggml_backend_cuda_context * ctx, const ggml_cgraph * cgraph) {
    constexpr size_t most_nodes = 1 << 17; // of all graphs that are remembered, 27 MB of the host's memory

    const void * first = cgraph->n_nodes > 0 ? cgraph->nodes[0] : nullptr;
    const void * last  = cgraph->n_nodes > 0 ? cgraph->nodes[cgraph->n_nodes - 1] : nullptr;
    const auto is_it   = [&](const std::unique_ptr<ggml_cuda_graph> & g) { return g->first == first && g->last == last; };

    if (ctx->cuda_graph != nullptr) {
        if (is_it(ctx->cuda_graph)) {
            return;
        }
        ctx->idle_cuda_graphs.push_back(std::move(ctx->cuda_graph));
    }
    size_t nodes = cgraph->n_nodes;
    for (size_t i = ctx->idle_cuda_graphs.size(); i-- > 0;) {
        auto & idle = ctx->idle_cuda_graphs[i];
        nodes += idle->ggml_graph_properties.size();
        if (is_it(idle)) {
            ctx->cuda_graph = std::move(idle);
            ctx->idle_cuda_graphs.erase(ctx->idle_cuda_graphs.begin() + i);
            return;
        }
    }
    while (nodes > most_nodes && !ctx->idle_cuda_graphs.empty()) { // the one that was used longest ago
        nodes -= ctx->idle_cuda_graphs.front()->ggml_graph_properties.size();
        ctx->idle_cuda_graphs.erase(ctx->idle_cuda_graphs.begin());
    }
    ctx->cuda_graph.reset(new ggml_cuda_graph());
    ctx->cuda_graph->first = first;
    ctx->cuda_graph->last  = last;
}

// What a replay launches is counted when it is replayed first.
static void inkling_count_launches(ggml_cuda_graph * graph, bool recorded_anew) {
    if (recorded_anew) {
        graph->num_nodes = 0;
        return;
    }
    if (graph->num_nodes == 0) {
        CUDA_CHECK(cudaGraphGetNodes(graph->graph, nullptr, &graph->num_nodes));
    }
    inkling_graph_counts[3] += graph->num_nodes;
}

// inkling_record_graph decides about a graph that could be replayed. changed says
// whether it is as it was the last time; afterwards, whether it is to be recorded.
static void inkling_record_graph(ggml_cuda_graph * graph, bool & use_cuda_graph, bool & changed) {
    if (changed) {
        graph->recorded = false;
        use_cuda_graph  = false;
    } else if (use_cuda_graph) {
        changed         = !graph->recorded;
        graph->recorded = true;
        inkling_count_launches(graph, changed);
    }
}

static void inkling_count_graph(bool use_cuda_graph, bool recorded) {
    inkling_graph_counts[use_cuda_graph ? recorded : 2]++;
}
