#pragma once
#include "types.cuh"

// V neighbouring columns of a row of B or C, moved by one load or store.
template <u32 V>
struct alignas(sizeof(Scalar) * V) Pack {
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
