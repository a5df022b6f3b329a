#pragma once
#include "matrices.cuh"

// The first of the columns of C that a thread holds.
template <u32 V>
__device__ constexpr u32 column_of(const Output<V>& output) { return output.column; }

template <u32 V>
__device__ __forceinline__ Pack<V> shuffle_up(const Pack<V>& sum, u32 offset) {
  Pack<V> other;
  for (u32 v = 0; v < V; ++v) other.at[v] = __shfl_up_sync(FULL_WARP, sum.at[v], offset);
  return other;
}

// Reads past L1, which may hold what the address held before.
template <u32 V>
__device__ __forceinline__ Pack<V> load_from_l2(const Pack<V>* address) {
  Pack<V> pack;
  for (u32 v = 0; v < V; ++v) pack.at[v] = __ldcg(address->at + v);
  return pack;
}

// Sums over LANES lanes that are STRIDE lanes apart. All lanes of the warp must take part.
template <u32 LANES, u32 STRIDE, u32 V>
__device__ __forceinline__ void reduce_lanes(Pack<V>& sum) {
#pragma unroll
  for (u32 d = STRIDE; d < LANES * STRIDE; d *= 2) {
    for (u32 v = 0; v < V; ++v) sum.at[v] += __shfl_xor_sync(0xffffffff, sum.at[v], d);
  }
}
