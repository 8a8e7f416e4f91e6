// Products of few rows: what products.cu, productsup.cu and productsdown.cu share on the host.
#pragma once

#include "productsrows.cuh"

extern const inkling_fused_op inkling_products;     // products.cu
extern const inkling_fused_op inkling_experts_up;   // productsup.cu
extern const inkling_fused_op inkling_experts_down; // productsdown.cu

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

constexpr int INKLING_MAX_COLUMNS = 8;  // of a launch
constexpr int INKLING_MAX_CHOICES = 32; // rows with experts of their own

// What a launch has to share.
struct inkling_chip {
    int    sms;
    size_t shared; // bytes a block may have

    explicit inkling_chip(int device) : sms(ggml_cuda_info().devices[device].nsm), shared(ggml_cuda_info().devices[device].smpbo) {}
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

// Places of a column of k.
static inline int64_t inkling_places(int64_t k) {
    return (k/32 + INKLING_TURN - 1)/INKLING_TURN*INKLING_TURN;
}

// How rows of k weights are cut: into the fewest pieces with which a block's most warps
// have room. Pieces are turns, whose bytes are a multiple of 16 in every type.
struct inkling_cut {
    int groups, pieces; // groups of a piece

    int bytes(int64_t row_bytes, int64_t k) const { return int(pieces == 1 ? row_bytes : row_bytes*groups/(k/32)); }
};

// The cut of rows whose longest has row_bytes, and the number of warps, three quarters of
// the most at least, with which the busiest of a block's four schedulers has least to
// do when items are dealt to the warps of all blocks.
static inline bool inkling_spread(inkling_layout & l, inkling_cut & cut, const inkling_chip & chip, bool tables, int64_t k, int columns, int64_t row_bytes, int64_t items) {
    const int places = int(inkling_places(k)), turns = places/INKLING_TURN;
    const auto fits = [&](int warps) {
        return inkling_lay_out(l, chip, tables, places, columns, 0, cut.bytes(row_bytes, k), warps);
    };
    int most = INKLING_MAX_WARPS;
    for (int piece = turns;; piece = (piece + 1)/2) {
        cut = {piece*INKLING_TURN, (turns + piece - 1)/piece};
        if (fits(most) || piece == 1) {
            break;
        }
    }
    while (!fits(most)) {
        if (--most < 4) { // too few to be fast
            return false;
        }
    }
    const auto time = [&](int64_t warps) { return (items + warps*chip.sms - 1)/(warps*chip.sms)*((warps + 3)/4); };
    int best = most;
    for (int warps = most - 1; warps > 0 && 4*warps >= 3*most; warps--) {
        if (time(warps) < time(best)) {
            best = warps;
        }
    }
    return fits(best);
}

// w is a matrix, or a bank of them, that the kernels read in place: whole rows of
// blocks, each a multiple of 16 bytes as copies are.
static inline bool inkling_is_matrix(const ggml_tensor * w, int64_t k) {
    return w->ne[0] == k && w->ne[3] == 1 && ggml_is_contiguous(w) && w->nb[1] % 16 == 0 && w->nb[1] < INT32_MAX && w->view_offs % 16 == 0;
}

#endif
