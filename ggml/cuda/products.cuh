// Products of few rows: what products.cu, productsup.cu and productsdown.cu share on the host.
#pragma once

#include "productsrows.cuh"

extern const inkling_fused_op inkling_products;     // products.cu
extern const inkling_fused_op inkling_experts_up;   // productsup.cu
extern const inkling_fused_op inkling_experts_down; // productsdown.cu

constexpr int INKLING_MAX_COLUMNS = 8;

// What a launch has to share.
struct inkling_chip {
    int    sms;
    size_t shared; // bytes a block may have

    explicit inkling_chip(int device) : sms(ggml_cuda_info().devices[device].nsm), shared(ggml_cuda_info().devices[device].smpbo) {}
    inkling_chip(int sms, size_t shared) : sms(sms), shared(shared) {}
};

// Shared memory of a block: the tables if a type needs them, the vectors, the rings.
struct inkling_layout {
    int vectors, extra, rings; // offsets; extra is what a kernel adds
    int slot_bytes, stages;
    int warps;

    int bytes() const { return rings + warps*stages*slot_bytes; }
};

// Groups of a lane when a row of k weights is one piece: 0 if there is no kernel for it.
static inline int inkling_groups_of_lane(int64_t k) {
    for (int g : {1, 2, 4, 6, 7}) {
        if (k <= 1024*g && k % (32*g) == 0) {
            return g;
        }
    }
    return 0;
}

// The layout for pieces of up to piece_bytes and an activation of columns*places
// groups; false if a ring of two slots a warp does not fit.
static inline bool inkling_lay_out(inkling_layout & l, const inkling_chip & chip, bool tables, int places, int columns, int extra, int piece_bytes, int warps) {
    l.vectors    = tables ? INKLING_TABLE_BYTES : 0;
    l.extra      = l.vectors + inkling_vectors::bytes(places, columns);
    l.rings      = (l.extra + extra + 127)/128*128;
    l.slot_bytes = 2*(piece_bytes + 16); // two rows; reads of whole words end behind each
    l.warps      = warps;
    l.stages     = std::min(INKLING_MAX_STAGES, (int(chip.shared) - l.rings)/(warps*l.slot_bytes));
    return int(chip.shared) > l.rings && l.stages >= 2;
}

// Whether a block of up to most warps can have the layout, and the number of warps with which
// items are dealt most evenly to those of all blocks.
static inline bool inkling_spread(inkling_layout & l, const inkling_chip & chip, bool tables, int places, int columns, int piece_bytes, int64_t items) {
    int64_t least = INT64_MAX;
    inkling_layout best = {};
    for (int warps = INKLING_MAX_WARPS; warps >= 4; warps--) {
        if (!inkling_lay_out(l, chip, tables, places, columns, 0, piece_bytes, warps) || (least < INT64_MAX && warps < 10)) {
            continue;
        }
        const int64_t all = int64_t(warps)*chip.sms, time = (items + all - 1)/all*all;
        if (time < least) {
            least = time;
            best  = l;
        }
    }
    l = best;
    return least < INT64_MAX;
}

// w is a matrix, or a bank of them, that the kernels read in place: whole rows of
// blocks, each a multiple of 16 bytes as copies are.
static inline bool inkling_is_matrix(const ggml_tensor * w, int64_t k) {
    return w->ne[0] == k && w->ne[3] == 1 && ggml_is_contiguous(w) && w->nb[1] % 16 == 0 && w->nb[1] < INT32_MAX && w->view_offs % 16 == 0;
}
