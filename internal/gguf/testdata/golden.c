// Writes the golden files of this folder with ggml itself:
//
//	ggml.gguf   one key of each value type, tensors of five types, by gguf_write_to_file
//	q8_0.bin    n float32, then their Q8_0 blocks, by quantize_row_q8_0_ref
//	q4_0.bin    n Q4_0 blocks, then their float32 values, by dequantize_row_q4_0
//
// Build it in the folder ml/backend/ggml/ggml of the pinned github.com/ollama/ollama:
//
//	for f in ggml.c ggml-quants.c ggml-alloc.c; do gcc -O1 -Iinclude -Isrc -DGGML_VERSION='""' -DGGML_COMMIT='""' -c src/$f; done
//	for f in ggml-backend.cpp ggml-threading.cpp gguf.cpp; do g++ -std=c++17 -O1 -Iinclude -Isrc -c src/$f; done
//	gcc -Iinclude -Isrc -c golden.c && g++ *.o -o golden -lm -lpthread && ./golden
#include "ggml.h"
#include "ggml-quants.h"
#include "gguf.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 1;

// next is a linear congruential generator: the same numbers everywhere.
static uint32_t next(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// wide returns numbers of both signs and many magnitudes.
static float wide(void) {
    float m = (float)next() / (1 << 24) * 2.0f - 1.0f;
    return ldexpf(m, (int)(next() % 40) - 30);
}

static void write_gguf(void) {
    struct ggml_init_params params = {1 << 20, NULL, false};
    struct ggml_context * ctx = ggml_init(params);
    struct gguf_context * g = gguf_init_empty();

    gguf_set_val_str(g, "general.architecture", "golden");
    gguf_set_val_u8(g, "test.u8", 200);
    gguf_set_val_i8(g, "test.i8", -100);
    gguf_set_val_u16(g, "test.u16", 60000);
    gguf_set_val_i16(g, "test.i16", -30000);
    gguf_set_val_u32(g, "test.u32", 4000000000u);
    gguf_set_val_i32(g, "test.i32", -2000000000);
    gguf_set_val_u64(g, "test.u64", 18000000000000000000ull);
    gguf_set_val_i64(g, "test.i64", -9000000000000000000ll);
    gguf_set_val_f32(g, "test.f32", 0.1f);
    gguf_set_val_f64(g, "test.f64", 0.1);
    gguf_set_val_bool(g, "test.bool", true);
    const char * strs[] = {"", "a", "\xc4\xa0the", "two words"};
    gguf_set_arr_str(g, "test.strs", strs, 4);
    int32_t ints[] = {1, -2, 3};
    gguf_set_arr_data(g, "test.i32s", GGUF_TYPE_INT32, ints, 3);
    float floats[] = {0.5f, -1.25f};
    gguf_set_arr_data(g, "test.f32s", GGUF_TYPE_FLOAT32, floats, 2);
    int8_t bools[] = {1, 0, 1};
    gguf_set_arr_data(g, "test.bools", GGUF_TYPE_BOOL, bools, 3);

    enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K};
    for (int i = 0; i < 5; i++) {
        struct ggml_tensor * t = i == 0 ? ggml_new_tensor_1d(ctx, types[i], 3)
                                        : ggml_new_tensor_3d(ctx, types[i], 256, 2, i);
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", i, ggml_type_name(types[i]));
        ggml_set_name(t, name);
        for (size_t j = 0; j < ggml_nbytes(t); j++) {
            ((uint8_t *)t->data)[j] = (uint8_t)(i + 7 * j);
        }
        gguf_add_tensor(g, t);
    }
    if (!gguf_write_to_file(g, "ggml.gguf", false)) exit(1);
    gguf_free(g);
    ggml_free(ctx);
}

static void write_quants(void) {
    enum { n = 64 * 32 };
    static float x[n];
    static uint8_t q[n / 32 * 34];
    for (int i = 0; i < n; i++) x[i] = wide();
    for (int i = 0; i < 32; i++) x[i] = 0;                         // d = 0
    for (int i = 0; i < 32; i++) x[32 + i] = i == 7 ? 127 : (i - 16) + 0.5f; // halves, d = 1
    for (int i = 0; i < 32; i++) x[64 + i] = ldexpf(x[64 + i], -120); // d is 0 as F16 only
    for (int i = 0; i < 32; i++) x[96 + i] = i == 7 ? 127 : 0.49999997f; // half, less a bit
    quantize_row_q8_0_ref(x, (block_q8_0 *)q, n);
    FILE * f = fopen("q8_0.bin", "wb");
    fwrite(x, sizeof x, 1, f);
    fwrite(q, sizeof q, 1, f);
    fclose(f);

    static uint8_t b[n / 32 * 18];
    for (size_t i = 0; i < sizeof b; i++) b[i] = (uint8_t)next();
    for (size_t i = 0; i < sizeof b; i += 18) b[i + 1] &= 0xbf; // scales below 2, no NaN
    dequantize_row_q4_0((block_q4_0 *)b, x, n);
    f = fopen("q4_0.bin", "wb");
    fwrite(b, sizeof b, 1, f);
    fwrite(x, sizeof x, 1, f);
    fclose(f);
}

int main(void) {
    write_gguf();
    write_quants();
    return 0;
}
