#pragma once
#include "types.cuh"

// V neighbouring columns of a row of B or C, moved by one load or store.
template <typename T, u32 V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];

  __device__ __forceinline__ void operator+=(const Pack& other) {
#pragma unroll
    for (u32 v = 0; v < V; ++v) at[v] += other.at[v];
  }
};

// The dense matrix B, row-major. A thread handles V columns from `column`; threads past the last
// column load zeros.
template <typename T, u32 COLUMNS, u32 V>
struct Input {
  using Sum = Pack<T, V>;
  const T* __restrict__ B;
  u32 column;

  __device__ __forceinline__ Pack<T, V> at(u32 row) const {
    static_assert(COLUMNS % V == 0, "vector loads need aligned rows");
    if (COLUMNS % (32 * V) != 0 && column >= COLUMNS) return Pack<T, V>{};
    return *reinterpret_cast<const Pack<T, V>*>(B + u64(row) * COLUMNS + column);
  }
};

// sum += a * x where `live`. Elsewhere x may be anything, also infinite.
template <typename T, u32 V>
__device__ __forceinline__ void multiply_add(Pack<T, V>& sum, bool live, T a, const Pack<T, V>& x) {
#pragma unroll
  for (u32 v = 0; v < V; ++v) sum.at[v] = live ? fma(a, x.at[v], sum.at[v]) : sum.at[v];
}

// The dense matrix C = alpha * A * B + beta * C, row-major. The old C is not read when beta is 0;
// threads past the last column store nothing.
template <typename T, u32 COLUMNS, u32 V>
struct Output {
  static constexpr u32 columns = COLUMNS;
  T* __restrict__ C;
  u32 column;
  T alpha, beta;

  __device__ __forceinline__ void store(u32 row, const Pack<T, V>& sum) const {
    if (column >= COLUMNS) return;
    auto* target = reinterpret_cast<Pack<T, V>*>(C + u64(row) * COLUMNS + column);
    Pack<T, V> result;
#pragma unroll
    for (u32 v = 0; v < V; ++v) result.at[v] = alpha * sum.at[v];
    if (beta != T(0)) {
      const auto old = *target;
#pragma unroll
      for (u32 v = 0; v < V; ++v) result.at[v] = fma(beta, old.at[v], result.at[v]);
    }
    *target = result;
  }
};

template <typename T, u32 V>
__device__ __forceinline__ Pack<T, V> shuffle_xor(const Pack<T, V>& sum, u32 offset) {
  Pack<T, V> other;
#pragma unroll
  for (u32 v = 0; v < V; ++v) other.at[v] = __shfl_xor_sync(FULL_WARP, sum.at[v], offset);
  return other;
}

template <typename T, u32 V>
__device__ __forceinline__ Pack<T, V> shuffle_up(const Pack<T, V>& sum, u32 offset) {
  Pack<T, V> other;
#pragma unroll
  for (u32 v = 0; v < V; ++v) other.at[v] = __shfl_up_sync(FULL_WARP, sum.at[v], offset);
  return other;
}

// Reads past L1, which may hold what the address held before.
template <typename T, u32 V>
__device__ __forceinline__ Pack<T, V> load_from_l2(const Pack<T, V>* address) {
  Pack<T, V> pack;
#pragma unroll
  for (u32 v = 0; v < V; ++v) pack.at[v] = __ldcg(address->at + v);
  return pack;
}
