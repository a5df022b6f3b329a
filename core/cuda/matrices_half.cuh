#pragma once
#include "half.cuh"

// Sums of V neighbouring columns of C.
template <u32 V>
struct alignas(V < 4 ? sizeof(Scalar) * V : 16) Pack {
  Scalar at[V];
  __device__ __forceinline__ void operator+=(const Pack& other) {
    for (u32 v = 0; v < V; ++v) at[v] += other.at[v];
  }
};

// sum += a * x where `live`. Elsewhere x may be anything, also infinite.
template <u32 V>
__device__ __forceinline__ void multiply_add(Pack<V>& sum, bool live, Scalar a, const Pack<V>& x) {
  for (u32 v = 0; v < V; ++v) sum.at[v] = live ? fma(a, x.at[v], sum.at[v]) : sum.at[v];
}

// V neighbouring columns of a row of B or C as they lie in memory, two to a word, the first below.
template <u32 V>
struct alignas(sizeof(Dense) * V) Stored {
  u32 words[V / 2];
};

// Columns as they are stored.
template <u32 V>
__device__ __forceinline__ Stored<V> to_stored(const Pack<V>& pack) {
  Stored<V> stored{};
  for (u32 v = 0; v < V; ++v) {
    stored.words[v / 2] |= u32(Dense::nearest(pack.at[v]).bits) << v % 2 * 16;
  }
  return stored;
}
