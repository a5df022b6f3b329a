#pragma once
#include "types.cuh"

// V neighbouring columns of a row of B or C, moved by one load or store.
template <u32 V>
struct alignas(sizeof(Scalar) * V) Pack {
  Scalar at[V];
  __device__ __forceinline__ void operator+=(const Pack& other) {
#pragma unroll
    for (u32 v = 0; v < V; ++v) at[v] += other.at[v];
  }
};

// sum += a * x where `live`. Elsewhere x may be anything, also infinite.
template <u32 V>
__device__ __forceinline__ void multiply_add(Pack<V>& sum, bool live, Scalar a, const Pack<V>& x) {
#pragma unroll
  for (u32 v = 0; v < V; ++v) sum.at[v] = live ? fma(a, x.at[v], sum.at[v]) : sum.at[v];
}

// The dense matrix B, row-major. A thread handles V columns from `column`; threads past the last
// column load zeros.
template <u32 V>
struct Input {
  const Scalar* B;
  u32 column;
  __device__ __forceinline__ Pack<V> operator[](u32 row) const {
    static_assert(COLUMNS % V == 0, "vector loads need aligned rows");
    if (COLUMNS % (32 * V) != 0 && column >= COLUMNS) return Pack<V>{};
    return *reinterpret_cast<const Pack<V>*>(B + size_t(row) * COLUMNS + column);
  }
};

// The dense matrix C = alpha * A * B + beta * C, row-major. The old C is not read when beta is 0;
// threads past the last column store nothing.
template <u32 V>
struct Output {
  Scalar* __restrict__ C;
  u32 column;
  Scalar alpha, beta;
  __device__ __forceinline__ void store(u32 row, const Pack<V>& sum) const {
    if (column >= COLUMNS) return;
    auto* target = reinterpret_cast<Pack<V>*>(C + size_t(row) * COLUMNS + column);
    Pack<V> result;
#pragma unroll
    for (u32 v = 0; v < V; ++v) result.at[v] = alpha * sum.at[v];
    if (beta != 0) multiply_add(result, true, beta, Pack<V>(*target));
    *target = result;
  }
};
