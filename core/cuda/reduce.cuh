#pragma once
#include "types.cuh"

// Sums over the threads of a block that share threadIdx.x % STRIDE; the result is valid in the
// first STRIDE threads. `scratch` holds BLOCK / 32 * STRIDE sums.
template <u32 BLOCK, u32 STRIDE, typename Sum>
__device__ __forceinline__ void reduce_block(Sum& sum, Sum* scratch) {
  reduce_lanes<32 / STRIDE, STRIDE>(sum);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < STRIDE) scratch[warp * STRIDE + lane] = sum;
  __syncthreads();
  if (threadIdx.x < STRIDE) {
    for (u32 other = 1; other < BLOCK / 32; ++other) sum += scratch[other * STRIDE + lane];
  }
}
