#include "products.cuh"
#include "productsfloat.cuh"

#if !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)

constexpr int INKLING_MAX_WEIGHTS = 4;

struct inkling_products_args {
    const uint8_t * w[INKLING_MAX_WEIGHTS];
    int   type[INKLING_MAX_WEIGHTS];
    int   row_bytes[INKLING_MAX_WEIGHTS];
    int   piece_bytes[INKLING_MAX_WEIGHTS];
    int   kind[INKLING_MAX_WEIGHTS];
    int   end[INKLING_MAX_WEIGHTS]; // rows up to the end of this weight
    bool  tables;
    const float * x;
    float * dst;
    int   k, n, rows, pairs, places;
    inkling_cut cut;
};

// A pair of rows of a launch.
struct inkling_products_cursor {
    int row, which, left; // row of the result; weight; rows of it from here on
    int piece = 0;
    int row_bytes;
    const uint8_t * src;

    __device__ __forceinline__ inkling_products_cursor(const inkling_products_args & a, int pair) {
        which = 0;
        int begin = 0;
        while (which < INKLING_MAX_WEIGHTS - 1 && pair >= (a.end[which] - begin + 1)/2) {
            pair -= (a.end[which] - begin + 1)/2;
            begin = a.end[which++];
        }
        row       = begin + 2*pair;
        left      = a.end[which] - row;
        row_bytes = a.row_bytes[which];
        src       = a.w[which] + int64_t(2*pair)*row_bytes;
    }

    __device__ __forceinline__ void next(const inkling_products_args & a) {
        piece = 0;
        if (left > 2) {
            row  += 2;
            left -= 2;
            src  += 2*row_bytes;
            return;
        }
        row += left;
        left = 0;
        while (left == 0 && which < INKLING_MAX_WEIGHTS - 1) {
            which++;
            left      = a.end[which] - row;
            row_bytes = a.row_bytes[which];
            src       = a.w[which];
        }
    }
};

// Products with quantised weights.
//
//   x:   [k, n]       w_i: [k, end_i - end_i-1]       dst: [rows, n]
//
// One block for each SM, up to 16 warps, as much shared memory as the slots take. Each
// warp of all blocks has an equal share of the pairs of rows, which are neighbours; a
// weight whose number of rows is odd ends with half a pair. N >= n columns.
template <int N>
static __global__ void __launch_bounds__(INKLING_MAX_WARPS*WARP_SIZE, 1) inkling_products_kernel(const __grid_constant__ inkling_products_args a, const __grid_constant__ inkling_layout l) {
    extern __shared__ uint8_t shared[];
    const int warp = threadIdx.x/WARP_SIZE, warps = gridDim.x*l.warps, number = warp*gridDim.x + blockIdx.x;
    const int first = int(int64_t(number)*a.pairs/warps);
    const int pairs = int(int64_t(number + 1)*a.pairs/warps) - first;

    inkling_slots slots(shared + l.slots + 2*warp*l.slot_bytes, l.slot_bytes);
    inkling_products_cursor ahead(a, first);
    int pieces_ahead = pairs*a.cut.pieces;
    const auto fill = [&]() {
        if (pieces_ahead > 0) {
            const int at = ahead.piece*a.piece_bytes[ahead.which], bytes = min(a.piece_bytes[ahead.which], ahead.row_bytes - at);
            uint8_t * slot = slots.fill();
            inkling_copy(slot, ahead.src + at, bytes);
            if (ahead.left > 1) {
                inkling_copy(slot + l.slot_bytes/2, ahead.src + ahead.row_bytes + at, bytes);
            }
            pieces_ahead--;
            if (++ahead.piece == a.cut.pieces) {
                ahead.next(a);
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
    const inkling_vectors y(shared + l.vectors, a.places, N);
    inkling_round(y, a.x, a.k, a.n);
    __syncthreads();

    inkling_products_cursor now(a, first);
    for (int i = 0; i < pairs; i++) {
        float acc[2][N] = {{0.0f}};
        for (int piece = 0; piece < a.cut.pieces; piece++) {
            fill();
            const uint8_t * slot = slots.take();
            const int begin = piece*a.cut.groups;
            inkling_pieces<N>(acc, a.kind[now.which], slot, slot + l.slot_bytes/2, min(a.cut.groups, a.k/32 - begin), shared, y, begin);
            __syncwarp(); // all lanes have read the slot
        }
#pragma unroll
        for (int c = 0; c < N; c++) {
            const float sum = inkling_sums(acc[0][c], acc[1][c]);
            const int r = threadIdx.x % WARP_SIZE/16;
            if (threadIdx.x % 16 == 0 && c < a.n && r < now.left) {
                a.dst[int64_t(c)*a.rows + now.row + r] = sum;
            }
        }
        now.next(a);
    }
}

struct inkling_products_plan {
    inkling_products_args args;
    inkling_layout layout;
    int columns; // template argument
};

// Completes args, whose weights, k, n and rows are known; false: not a product for this kernel.
static bool inkling_plan_products(inkling_products_plan & p, const inkling_chip & chip) {
    auto & a = p.args;
    if (a.k % 64 != 0) {
        return false;
    }
    p.columns = a.n <= 1 ? 1 : a.n <= 2 ? 2 : a.n <= 4 ? 4 : INKLING_MAX_COLUMNS;
    a.tables  = false;
    a.pairs   = 0;
    int longest = 0;
    for (int i = 0; i < INKLING_MAX_WEIGHTS; i++) {
        a.kind[i] = inkling_kind_of(ggml_type(a.type[i]));
        a.pairs += (a.end[i] - (i > 0 ? a.end[i - 1] : 0) + 1)/2;
        a.tables = a.tables || a.type[i] == GGML_TYPE_IQ3_XXS;
        longest  = std::max(longest, a.row_bytes[i]);
    }
    if (!inkling_spread(p.layout, a.cut, chip, a.tables, a.k, p.columns, longest, a.pairs)) {
        return false;
    }
    a.places = int(inkling_places(a.k));
    for (int i = 0; i < INKLING_MAX_WEIGHTS; i++) {
        a.piece_bytes[i] = a.cut.bytes(a.row_bytes[i], a.k);
    }
    return true;
}

template <int N>
static void inkling_launch_products_of(ggml_backend_cuda_context & ctx, const inkling_products_plan & p, const inkling_chip & chip) {
    CUDA_SET_SHARED_MEMORY_LIMIT(inkling_products_kernel<N>, chip.shared);
    inkling_launch(ctx, inkling_products_kernel<N>, chip.sms, p.layout.warps*WARP_SIZE, p.layout.bytes(), 1, p.args, p.layout);
}

static void inkling_launch_products(ggml_backend_cuda_context & ctx, const inkling_products_plan & p, const inkling_chip & chip) {
    switch (p.columns) {
        case 1: inkling_launch_products_of<1>(ctx, p, chip); break;
        case 2: inkling_launch_products_of<2>(ctx, p, chip); break;
        case 4: inkling_launch_products_of<4>(ctx, p, chip); break;
        case 8: inkling_launch_products_of<8>(ctx, p, chip); break;
    }
}

// The plan of a node; false: no kernel.
static bool inkling_products_of(inkling_products_plan & p, const inkling_chip & chip, const ggml_tensor * node) {
    const ggml_tensor * x = node->src[0];
    auto & a = p.args;
    a.x   = (const float *) x->data;
    a.dst = (float *) node->data;
    a.k   = int(x->ne[0]);
    a.n   = int(x->ne[1]);
    int64_t rows = 0;
    for (int i = 0; i < INKLING_MAX_WEIGHTS; i++) {
        const ggml_tensor * w = node->src[1 + i];
        if (w == nullptr) { // a weight without rows
            a.w[i]         = a.w[i - 1];
            a.type[i]      = a.type[i - 1];
            a.row_bytes[i] = a.row_bytes[i - 1];
        } else {
            a.w[i]         = (const uint8_t *) w->data;
            a.type[i]      = w->type;
            a.row_bytes[i] = int(w->nb[1]);
            rows += w->ne[1];
        }
        a.end[i] = int(rows);
    }
    a.rows = int(rows);
    return inkling_plan_products(p, chip);
}

static bool inkling_products_supports(int device, const ggml_tensor * node) {
    const ggml_tensor * x = node->src[0];
    if (!cp_async_available(ggml_cuda_info().devices[device].cc) || node->type != GGML_TYPE_F32 || !ggml_is_contiguous(node) ||
        x->type != GGML_TYPE_F32 || !ggml_is_contiguous(x) || x->view_offs % 16 != 0 || x->ne[1] > INKLING_MAX_COLUMNS ||
        x->ne[2]*x->ne[3] != 1 || x->ne[0] % 32 != 0 || x->ne[0] > INT32_MAX) {
        return false;
    }
    int64_t rows = 0;
    bool quantised = true, floats = true;
    for (int i = 1; i < GGML_MAX_SRC; i++) {
        const ggml_tensor * w = node->src[i];
        if (w == nullptr) {
            if (i == 1) {
                return false;
            }
            continue;
        }
        if (i > INKLING_MAX_WEIGHTS || node->src[i - 1] == nullptr || !inkling_is_matrix(w, x->ne[0]) || w->ne[2] != 1) {
            return false;
        }
        rows += w->ne[1];
        quantised = quantised && inkling_kind_of(w->type) < INKLING_KINDS;
        floats    = floats && inkling_is_float(w->type);
    }
    if (rows == 0 || rows > INT32_MAX || node->ne[0] != rows || node->ne[1] != x->ne[1] || node->ne[2]*node->ne[3] != 1) {
        return false;
    }
    inkling_products_plan p;
    return floats || (quantised && inkling_products_of(p, inkling_chip(device), node));
}

static void inkling_products_compute(ggml_backend_cuda_context & ctx, ggml_tensor * node) {
    const inkling_chip chip(ctx.device);
    if (inkling_is_float(node->src[1]->type)) {
        int row = 0;
        for (int i = 1; i <= INKLING_MAX_WEIGHTS && node->src[i] != nullptr; i++) {
            const ggml_tensor * w = node->src[i];
            inkling_float_args a = {w->data, (const float *) node->src[0]->data, (float *) node->data + row,
                int(w->ne[0]), int(w->ne[1]), int(node->src[0]->ne[1]), int(node->ne[0])};
            inkling_launch_float(ctx, a, w->type, chip.sms);
            row += int(w->ne[1]);
        }
        return;
    }
    inkling_products_plan p;
    GGML_ASSERT(inkling_products_of(p, chip, node));
    inkling_launch_products(ctx, p, chip);
}

const inkling_fused_op inkling_products = {301, inkling_products_supports, inkling_products_compute};

#endif
