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

// Shared memory of a block: the tables if a type needs them, the vectors, the slots.
struct inkling_layout {
    int vectors, extra, slots; // offsets; extra is what a kernel adds
    int slot_bytes;
    int warps;

    int bytes() const { return slots + 2*warps*slot_bytes; }
};

// The layout for pieces of up to piece_bytes and columns of places groups; false if it
// does not fit.
static inline bool inkling_lay_out(inkling_layout & l, const inkling_chip & chip, bool tables, int64_t places, int columns, int64_t extra, int64_t piece_bytes, int warps) {
    const int64_t vectors = tables ? INKLING_TABLE_BYTES : 0;
    const int64_t slots = (vectors + int64_t(inkling_vectors::bytes(1, columns))*places + extra + 127)/128*128;
    const int64_t slot  = 2*(piece_bytes + 16); // two rows; reads of whole words end behind each
    if (slots + 2*warps*slot > int64_t(chip.shared)) {
        return false;
    }
    l.vectors    = int(vectors);
    l.extra      = l.vectors + inkling_vectors::bytes(int(places), columns);
    l.slots      = int(slots);
    l.slot_bytes = int(slot);
    l.warps      = warps;
    return true;
}

// The layout with the most warps that fit, or up to a quarter less if items are dealt
// so much more evenly to the warps of all blocks.
static inline bool inkling_spread(inkling_layout & l, const inkling_chip & chip, bool tables, int64_t places, int columns, int64_t piece_bytes, int64_t items) {
    int warps = INKLING_MAX_WARPS;
    while (warps > 0 && !inkling_lay_out(l, chip, tables, places, columns, 0, piece_bytes, warps)) {
        warps--;
    }
    if (warps == 0) {
        return false;
    }
    const auto time = [&](int64_t w) { return (items + w*chip.sms - 1)/(w*chip.sms)*w; }; // of a block whose speed is the same
    int best = warps;
    for (int w = warps - 1; w > 0 && 4*w >= 3*warps; w--) {
        if (20*time(w) < 19*time(best)) {
            best = w;
        }
    }
    return inkling_lay_out(l, chip, tables, places, columns, 0, piece_bytes, best);
}

// Places of a column of k.
static inline int64_t inkling_places(int64_t k) {
    return (k/32 + INKLING_TURN - 1)/INKLING_TURN*INKLING_TURN;
}

// w is a matrix, or a bank of them, that the kernels read in place: whole rows of
// blocks, each a multiple of 16 bytes as copies are.
static inline bool inkling_is_matrix(const ggml_tensor * w, int64_t k) {
    return w->ne[0] == k && w->ne[3] == 1 && ggml_is_contiguous(w) && w->nb[1] % 16 == 0 && w->nb[1] < INT32_MAX && w->view_offs % 16 == 0;
}
