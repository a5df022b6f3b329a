#pragma once
#define Offset TYPE(row_offsets)
#define STEP BLOCK / STRIDE
#define FIRST first + threadIdx.x / STRIDE
// A launch has at least one block, also without rows.
if (block >= row_count) return;
const Offset first = __ldg(row_offsets + block), end = __ldg(row_offsets + block + 1);
Sum sum{}, *sums = reinterpret_cast<Sum*>(scratch);
BASE_OF(block);
#include "walk.cuh"
REDUCE_LANES(sum, 32 / STRIDE, STRIDE);
// Threads that share threadIdx.x % STRIDE share columns, and leave the sums of their warps to the
// first warp.
const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
if (lane < STRIDE) sums[warp * STRIDE + lane] = sum;
__syncthreads();
if (threadIdx.x >= STRIDE) return;
for (u32 other = 1; other < BLOCK / 32; ++other) sum += sums[other * STRIDE + lane];
STORE(block, sum);
