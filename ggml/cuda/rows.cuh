#pragma once

#include "fused.cuh"

extern const inkling_fused_op inkling_rows; // rows.cu
extern const inkling_fused_op inkling_row_sums;
