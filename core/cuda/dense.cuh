#pragma once
#include "types.cuh"

// The dense operands, row-major with COLUMNS columns (1 for SpMV). A thread handles V columns
// from `column`; threads past the last column load zeros and store nothing.

template <typename T, int COLUMNS, int V>
struct Input {
  const T* __restrict__ data;
  u32 column;

  __device__ __forceinline__ Pack<T, V> at(u32 row) const {
    static_assert(COLUMNS % V == 0, "vector loads need aligned rows");
    if (COLUMNS % (32 * V) != 0 && column >= COLUMNS) return zero_pack<T, V>();
    return *reinterpret_cast<const Pack<T, V>*>(data + u64(row) * COLUMNS + column);
  }
};

// sum += a * x where `live`. A dead lane's x may be anything, also infinite.
template <typename T, int V>
__device__ __forceinline__ void multiply_add(Pack<T, V>& sum, bool live, T a, const Pack<T, V>& x) {
#pragma unroll
  for (int v = 0; v < V; ++v) sum.at[v] = live ? fma(a, x.at[v], sum.at[v]) : sum.at[v];
}

template <typename T, int COLUMNS, int V>
struct Output {
  T* __restrict__ data;
  u32 column;
  T alpha;
  T beta;

  // output row = alpha * sum + beta * output row; the old row is not read when beta is 0.
  __device__ __forceinline__ void store(u32 row, const Pack<T, V>& sum) const {
    if (column >= COLUMNS) return;
    auto* target = reinterpret_cast<Pack<T, V>*>(data + u64(row) * COLUMNS + column);
    Pack<T, V> result;
#pragma unroll
    for (int v = 0; v < V; ++v) result.at[v] = alpha * sum.at[v];
    if (beta != T(0)) {
      const auto old = *target;
#pragma unroll
      for (int v = 0; v < V; ++v) result.at[v] = fma(beta, old.at[v], result.at[v]);
    }
    *target = result;
  }
};
