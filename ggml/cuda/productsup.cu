#include "productsbanks.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

struct inkling_up_args {
    inkling_bank gate, up, gate_shared, up_shared;
    inkling_choice choice;
    const float * x;
    float * h;
    int  k, ff, n, places;
    inkling_cut cut;
    int  piece_bytes, piece_bytes_shared;
    bool tables;
};

// A warp's place in a launch: rows of x in turn, of each first its share of the shared
// experts' pairs, since the others are known late, then that of the chosen ones'.
struct inkling_up_cursor {
    int t, slot, row;
    int left;      // pairs of the share from here on
    bool routed;   // which share
    int kind, row_bytes;
    const uint8_t * gate, * up;

    // Slot by slot of every expert's one pair in turn, so that all warps have as many in
    // all, and as many of either kind: the pairs of shared experts before place at.
    static __device__ __forceinline__ int shared_before(const inkling_up_args & a, const int at) {
        const int shared = a.choice.slots - a.choice.used;
        return at/a.choice.slots*shared + min(at % a.choice.slots, shared);
    }

    __device__ __forceinline__ void share(const inkling_up_args & a, const int number, const int warps) {
        const int64_t pairs = int64_t(a.choice.slots)*a.ff;
        const int begin = int(number*pairs/warps), end = int((number + 1)*pairs/warps);
        int first = shared_before(a, begin), last = shared_before(a, end);
        if (routed) {
            first = begin - first;
            last  = end - last;
        }
        left = last - first;
        slot = (routed ? 0 : a.choice.used) + first/a.ff;
        row  = first % a.ff;
        kind      = routed ? a.gate.kind : a.gate_shared.kind;
        row_bytes = routed ? a.gate.row_bytes : a.gate_shared.row_bytes;
    }

    __device__ __forceinline__ void expert(const inkling_up_args & a) {
        const int64_t at = a.choice.expert(t, slot)*(routed ? a.gate.expert_bytes : a.gate_shared.expert_bytes) + int64_t(row)*row_bytes;
        gate = (routed ? a.gate.w : a.gate_shared.w) + at;
        up   = (routed ? a.up.w : a.up_shared.w) + at;
    }

    // To the first pair of a share that has one; expert follows.
    __device__ __forceinline__ void settle(const inkling_up_args & a, const int number, const int warps) {
        while (left == 0 && t < a.n) {
            t += routed;
            routed = !routed;
            share(a, number, warps);
        }
    }

    __device__ __forceinline__ void begin(const inkling_up_args & a, const int number, const int warps) {
        t = 0;
        routed = false;
        share(a, number, warps);
        settle(a, number, warps);
    }

    template <bool pointers>
    __device__ __forceinline__ void next(const inkling_up_args & a, const int number, const int warps) {
        row++;
        if (--left > 0 && row < a.ff) {
            gate += row_bytes;
            up   += row_bytes;
            return;
        }
        if (left > 0) {
            slot++;
            row = 0;
        } else {
            settle(a, number, warps);
        }
        if (pointers && t < a.n) {
            expert(a);
        }
    }
};

// h = silu(gate x)·up x for all experts of a row.
//
//   x: [k, n]       gate, up: [k, ff, ...]       h: [ff, slots, n]
//
// One block for each SM, up to 16 warps. Each warp of all blocks has an equal share of
// the pairs of a gate's row and an up's. What rows of x have in common is read again,
// from L2.
static __global__ void __launch_bounds__(INKLING_MAX_WARPS*WARP_SIZE, 1) inkling_up_kernel(const __grid_constant__ inkling_up_args a, const __grid_constant__ inkling_layout l) {
    extern __shared__ uint8_t shared[];
    const int warp = threadIdx.x/WARP_SIZE, warps = gridDim.x*l.warps, number = warp*gridDim.x + blockIdx.x;

    inkling_slots slots(shared + l.slots + 2*warp*l.slot_bytes, l.slot_bytes);
    inkling_up_cursor ahead;
    ahead.begin(a, number, warps);
    int piece_ahead = 0;
    const auto fill = [&]() {
        if (ahead.t < a.n) {
            const int piece_bytes = ahead.routed ? a.piece_bytes : a.piece_bytes_shared;
            const int at = piece_ahead*piece_bytes, bytes = min(piece_bytes, ahead.row_bytes - at);
            uint8_t * slot = slots.fill();
            inkling_copy(slot, ahead.gate + at, bytes);
            inkling_copy(slot + l.slot_bytes/2, ahead.up + at, bytes);
            if (++piece_ahead == a.cut.pieces) {
                piece_ahead = 0;
                ahead.next<true>(a, number, warps);
            }
        }
        inkling_commit();
    };
    // A shared expert's pair is known before the choice, unless the step behind it looks at that.
    const bool known = ahead.t == 0 && !ahead.routed && ahead.left > 1;
    if (known) {
        ahead.expert(a);
        fill();
    }
    if (a.tables) {
        inkling_fill_table(shared);
    }
    inkling_wait();
    inkling_release();
    if (!known) {
        if (ahead.t < a.n) {
            ahead.expert(a);
        }
        fill();
    }
    const inkling_vectors y(shared + l.vectors, a.places, a.n);
    inkling_round(y, a.x, a.k, a.n);
    __syncthreads();

    inkling_up_cursor now;
    for (now.begin(a, number, warps); now.t < a.n; now.next<false>(a, number, warps)) {
        float acc[2][1] = {{0.0f}};
        for (int piece = 0; piece < a.cut.pieces; piece++) {
            fill();
            const uint8_t * slot = slots.take();
            const int begin = piece*a.cut.groups;
            inkling_pieces<1>(acc, now.kind, slot, slot + l.slot_bytes/2, min(a.cut.groups, a.k/32 - begin), shared, y, now.t*a.places + begin);
            __syncwarp(); // all lanes have read the slot
        }
        const float sum = inkling_sums(acc[0][0], acc[1][0]);
        const float up  = __shfl_sync(0xFFFFFFFF, sum, WARP_SIZE/2);
        if (threadIdx.x % WARP_SIZE == 0) {
            a.h[(int64_t(now.t)*a.choice.slots + now.slot)*a.ff + now.row] = sum/(1.0f + expf(-sum))*up;
        }
    }
}

struct inkling_up_plan {
    inkling_up_args args;
    inkling_layout layout;
};

static bool inkling_plan_up(inkling_up_plan & p, const inkling_chip & chip) {
    auto & a = p.args;
    if (a.k % 64 != 0) {
        return false;
    }
    int most = 0;
    a.tables = false;
    for (auto * bank : {&a.gate, &a.gate_shared}) { // an up is as its gate
        if (bank->row_bytes == 0) { // none shared
            continue;
        }
        bank->kind = inkling_kind_of(ggml_type(bank->type));
        a.tables   = a.tables || bank->type == GGML_TYPE_IQ3_XXS;
        most       = std::max(most, bank->row_bytes);
    }
    if (!inkling_spread(p.layout, a.cut, chip, a.tables, a.k, a.n, most, int64_t(a.choice.slots)*a.ff)) {
        return false;
    }
    a.places             = int(inkling_places(a.k));
    a.piece_bytes        = a.cut.bytes(a.gate.row_bytes, a.k);
    a.piece_bytes_shared = a.cut.bytes(a.gate_shared.row_bytes, a.k);
    return true;
}

static void inkling_launch_up(ggml_backend_cuda_context & ctx, const inkling_up_plan & p, const inkling_chip & chip) {
    CUDA_SET_SHARED_MEMORY_LIMIT(inkling_up_kernel, chip.shared);
    inkling_launch(ctx, inkling_up_kernel, chip.sms, p.layout.warps*WARP_SIZE, p.layout.bytes(), 1, p.args, p.layout);
}

// The launch for the rows of x from t on. node: h; sources: x, ids, gate, up and, where
// experts are shared, gateSh, upSh.
static bool inkling_up_of(inkling_up_plan & p, const inkling_chip & chip, const ggml_tensor * node, const int t) {
    const ggml_tensor * x = node->src[0], * ids = node->src[1], * gate = node->src[2];
    auto & a = p.args;
    a.gate        = inkling_bank_of(gate);
    a.up          = inkling_bank_of(node->src[3]);
    a.gate_shared = inkling_bank_of(node->src[4]);
    a.up_shared   = inkling_bank_of(node->src[5]);
    a.choice      = {(const int32_t *) ids->data + t*(ids->nb[1]/ids->nb[0]), int(ids->nb[1]/ids->nb[0]), int(ids->ne[0]), int(node->ne[1]), int(gate->ne[2])};
    a.x  = (const float *) x->data + t*x->ne[0];
    a.h  = (float *) node->data + t*node->ne[0]*node->ne[1];
    a.k  = int(x->ne[0]);
    a.ff = int(gate->ne[1]);
    a.n  = std::min(INKLING_MAX_COLUMNS, int(x->ne[1]) - t);
    return inkling_plan_up(p, chip);
}

static bool inkling_up_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * x = node->src[0], * ids = node->src[1], * gate = node->src[2], * up = node->src[3];
    if (!cp_async_available(ggml_cuda_info().devices[device].cc) || ids == nullptr || gate == nullptr || up == nullptr || node->src[6] != nullptr) {
        return false;
    }
    const int64_t k = x->ne[0], n = x->ne[1], ff = gate->ne[1], shared = node->src[4] != nullptr ? node->src[4]->ne[2] : 0;
    if (!inkling_is_activation(x) || x->ne[2] != 1 || n > INKLING_MAX_CHOICES || k % 32 != 0 ||
        !inkling_is_columns(ids, GGML_TYPE_I32, ids->ne[0], n) ||
        !inkling_is_bank(gate, k, ff, gate->ne[2]) || !inkling_is_bank(up, k, ff, gate->ne[2]) || up->type != gate->type ||
        (shared > 0 && (!inkling_is_bank(node->src[4], k, ff, shared) || !inkling_is_bank(node->src[5], k, ff, shared) || node->src[5]->type != node->src[4]->type))) {
        return false;
    }
    if (node->type != GGML_TYPE_F32 || !ggml_is_contiguous(node) || node->ne[0] != ff || node->ne[1] != ids->ne[0] + shared || node->ne[2] != n || node->ne[3] != 1 ||
        ff*node->ne[1] > INT32_MAX) {
        return false;
    }
    inkling_up_plan p;
    return inkling_up_of(p, inkling_chip(device), node, 0);
}

static void inkling_up_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const inkling_chip chip(ctx.device);
    for (int t = 0; t < node->ne[2]; t += INKLING_MAX_COLUMNS) {
        inkling_up_plan p;
        GGML_ASSERT(inkling_up_of(p, chip, node, t));
        inkling_launch_up(ctx, p, chip);
    }
}

const inkling_fused_op inkling_experts_up = {302, inkling_up_supports, inkling_up_compute};

#endif
