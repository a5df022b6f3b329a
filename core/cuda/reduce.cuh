#pragma once
#include "types.cuh"

constexpr u32 FULL_WARP = 0xffffffffu;

// Sums over LANES lanes that are STRIDE lanes apart. All lanes of the warp must take part.
template <int LANES, int STRIDE, typename T, int V>
__device__ __forceinline__ void reduce_lanes(Pack<T, V>& sum) {
  static_assert(LANES * STRIDE <= 32, "a reduction stays within a warp");
#pragma unroll
  for (int offset = STRIDE; offset < LANES * STRIDE; offset *= 2) {
#pragma unroll
    for (int v = 0; v < V; ++v) sum.at[v] += __shfl_xor_sync(FULL_WARP, sum.at[v], offset);
  }
}

// Sums over the threads of a block that share threadIdx.x % STRIDE; the result is valid in the
// first STRIDE threads. `scratch` holds BLOCK / 32 * STRIDE packs.
template <int BLOCK, int STRIDE, typename T, int V>
__device__ __forceinline__ void reduce_block(Pack<T, V>& sum, Pack<T, V>* scratch) {
  reduce_lanes<32 / STRIDE, STRIDE>(sum);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane < STRIDE) scratch[warp * STRIDE + lane] = sum;
  __syncthreads();
  if (threadIdx.x < STRIDE) {
    for (u32 other = 1; other < BLOCK / 32; ++other) {
#pragma unroll
      for (int v = 0; v < V; ++v) sum.at[v] += scratch[other * STRIDE + lane].at[v];
    }
  }
}
