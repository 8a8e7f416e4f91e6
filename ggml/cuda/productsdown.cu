#include "productsbanks.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

struct inkling_down_args {
    inkling_bank down, down_shared;
    inkling_choice choice;
    const float * h;
    const float * weights;
    int     weights_stride; // floats from row to row
    float * dst;
    int  ff, rows, n, places;
    int  sets; // warps of a slot
    bool tables;
};

// The sum over a row's experts of weight·down h.
//
//   h: [ff, slots, n]       weights: [slots, n]       down: [ff, rows, ...]       dst: [rows, n]
//
// One block for each SM, sets warps for every slot. A block has the same output rows of
// all experts; their parts meet in shared memory and are added in the order of slots.
static __global__ void __launch_bounds__(INKLING_MAX_WARPS*WARP_SIZE, 1) inkling_down_kernel(const __grid_constant__ inkling_down_args a, const __grid_constant__ inkling_layout l) {
    extern __shared__ uint8_t shared[];
    const int warp = threadIdx.x/WARP_SIZE, slot = warp % a.choice.slots, set = warp/a.choice.slots;
    const int row0 = int(int64_t(blockIdx.x)*a.rows/gridDim.x);
    const int rows = int(int64_t(blockIdx.x + 1)*a.rows/gridDim.x) - row0; // of the block
    const int first = set*rows/a.sets, last = (set + 1)*rows/a.sets; // of the warp
    const int pairs = (last - first + 1)/2;
    float * parts = (float *) (shared + l.extra); // [slot][row]

    const bool is_routed = slot < a.choice.used;
    const int  row_bytes = is_routed ? a.down.row_bytes : a.down_shared.row_bytes;
    const int  kind      = is_routed ? a.down.kind : a.down_shared.kind;
    inkling_slots slots(shared + l.slots + 2*warp*l.slot_bytes, l.slot_bytes);

    // The choice is older than h, so it is complete before the wait: launch.cuh.
    const auto begin = [&](const int t) {
        const int64_t at = a.choice.expert(t, slot)*(is_routed ? a.down.expert_bytes : a.down_shared.expert_bytes);
        return (is_routed ? a.down.w : a.down_shared.w) + at + int64_t(row0 + first)*row_bytes;
    };
    int t_ahead = 0, left = last - first; // rows of t_ahead from src on
    const uint8_t * src = begin(0);
    const auto fill = [&]() {
        if (t_ahead < a.n && pairs > 0) {
            uint8_t * to = slots.fill();
            inkling_copy(to, src, row_bytes);
            if (left > 1) {
                inkling_copy(to + l.slot_bytes/2, src + row_bytes, row_bytes);
            }
            src  += 2*row_bytes;
            left -= 2;
            if (left <= 0 && ++t_ahead < a.n) {
                src  = begin(t_ahead);
                left = last - first;
            }
        }
        inkling_commit();
    };
    fill();
    if (a.tables) {
        inkling_fill_table(shared);
    }
    inkling_wait();
    inkling_release();
    const inkling_vectors y(shared + l.vectors, a.places, a.choice.slots);
    for (int t = 0; t < a.n; t++) {
        inkling_round(y, a.h + int64_t(t)*a.choice.slots*a.ff, a.ff, a.choice.slots);
        const float weight = a.weights[t*a.weights_stride + slot];
        __syncthreads();

        for (int i = 0; i < pairs; i++) {
            fill();
            const uint8_t * from = slots.take();
            float acc[2][1] = {{0.0f}};
            inkling_pieces<1>(acc, kind, from, from + l.slot_bytes/2, a.ff/32, shared, y, slot*a.places);
            __syncwarp(); // all lanes have read the slot
            const float sum = inkling_sums(acc[0][0], acc[1][0]);
            const int r = first + 2*i + threadIdx.x % WARP_SIZE/16;
            if (threadIdx.x % 16 == 0 && r < last) {
                parts[slot*rows + r] = weight*sum;
            }
        }
        __syncthreads();
        for (int r = threadIdx.x; r < rows; r += blockDim.x) {
            float sum = 0.0f;
            for (int s = 0; s < a.choice.slots; s++) {
                sum += parts[s*rows + r];
            }
            a.dst[int64_t(t)*a.rows + row0 + r] = sum;
        }
        // parts are written again behind the next __syncthreads
    }
}

struct inkling_down_plan {
    inkling_down_args args;
    inkling_layout layout;
};

static bool inkling_plan_down(inkling_down_plan & p, const inkling_chip & chip) {
    auto & a = p.args;
    if (a.ff % 64 != 0 || a.choice.slots > INKLING_MAX_WARPS) {
        return false;
    }
    a.places = int(inkling_places(a.ff));
    int most = 0;
    a.tables = false;
    for (auto * bank : {&a.down, &a.down_shared}) {
        if (bank->row_bytes == 0) {
            continue;
        }
        bank->kind = inkling_kind_of(ggml_type(bank->type));
        a.tables   = a.tables || bank->type == GGML_TYPE_IQ3_XXS;
        most       = std::max(most, bank->row_bytes);
    }
    const int parts = int(sizeof(float))*a.choice.slots*((a.rows + chip.sms - 1)/chip.sms + 1);
    for (a.sets = INKLING_MAX_WARPS/a.choice.slots; a.sets > 0; a.sets--) {
        if (inkling_lay_out(p.layout, chip, a.tables, a.places, a.choice.slots, parts, most, a.choice.slots*a.sets)) {
            return true;
        }
    }
    return false;
}

static void inkling_launch_down(ggml_backend_cuda_context & ctx, const inkling_down_plan & p, const inkling_chip & chip) {
    CUDA_SET_SHARED_MEMORY_LIMIT(inkling_down_kernel, chip.shared);
    inkling_launch(ctx, inkling_down_kernel, chip.sms, p.layout.warps*WARP_SIZE, p.layout.bytes(), 1, p.args, p.layout);
}

// node: the sum; sources: h, ids, weights, down and, where experts are shared, downSh.
static bool inkling_down_of(inkling_down_plan & p, const inkling_chip & chip, const ggml_tensor * node) {
    const ggml_tensor * h = node->src[0], * ids = node->src[1], * weights = node->src[2], * down = node->src[3];
    auto & a = p.args;
    a.down        = inkling_bank_of(down);
    a.down_shared = inkling_bank_of(node->src[4]);
    a.choice      = {(const int32_t *) ids->data, int(ids->nb[1]/ids->nb[0]), int(ids->ne[0]), int(h->ne[1]), int(down->ne[2])};
    a.h              = (const float *) h->data;
    a.weights        = (const float *) weights->data;
    a.weights_stride = int(weights->nb[1]/weights->nb[0]);
    a.dst  = (float *) node->data;
    a.ff   = int(h->ne[0]);
    a.rows = int(down->ne[1]);
    a.n    = int(h->ne[2]);
    return inkling_plan_down(p, chip);
}

static bool inkling_down_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * h = node->src[0], * ids = node->src[1], * weights = node->src[2], * down = node->src[3];
    if (!cp_async_available(ggml_cuda_info().devices[device].cc) || ids == nullptr || weights == nullptr || down == nullptr || node->src[5] != nullptr) {
        return false;
    }
    const int64_t ff = h->ne[0], slots = h->ne[1], n = h->ne[2], rows = down->ne[1], shared = node->src[4] != nullptr ? node->src[4]->ne[2] : 0;
    if (!inkling_is_activation(h) || n > INKLING_MAX_CHOICES || ff % 32 != 0 || ids->ne[0] + shared != slots ||
        !inkling_is_columns(ids, GGML_TYPE_I32, ids->ne[0], n) || !inkling_is_columns(weights, GGML_TYPE_F32, slots, n) ||
        !inkling_is_bank(down, ff, rows, down->ne[2]) || (shared > 0 && !inkling_is_bank(node->src[4], ff, rows, shared))) {
        return false;
    }
    if (node->type != GGML_TYPE_F32 || !ggml_is_contiguous(node) || node->ne[0] != rows || node->ne[1] != n || node->ne[2]*node->ne[3] != 1 || rows > INT32_MAX) {
        return false;
    }
    inkling_down_plan p;
    return inkling_down_of(p, inkling_chip(device), node);
}

static void inkling_down_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const inkling_chip chip(ctx.device);
    inkling_down_plan p;
    GGML_ASSERT(inkling_down_of(p, chip, node));
    inkling_launch_down(ctx, p, chip);
}

const inkling_fused_op inkling_experts_down = {303, inkling_down_supports, inkling_down_compute};

#endif
