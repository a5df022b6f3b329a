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
  const T* __restrict__ B;
  u32 column;

  __device__ __forceinline__ Pack<T, V> operator[](u32 row) const {
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

// The columns of C, and the first of those that a thread holds.
template <typename T, u32 COLUMNS, u32 V>
__device__ constexpr u32 column_count(const Output<T, COLUMNS, V>&) { return COLUMNS; }
template <typename T, u32 COLUMNS, u32 V>
__device__ constexpr u32 column_of(const Output<T, COLUMNS, V>& output) { return output.column; }

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

// Sums over LANES lanes that are STRIDE lanes apart. All lanes of the warp must take part.
template <u32 LANES, u32 STRIDE, typename Sum>
__device__ __forceinline__ void reduce_lanes(Sum& sum) {
  static_assert(LANES * STRIDE <= 32, "a reduction stays within a warp");
#pragma unroll
  for (u32 offset = STRIDE; offset < LANES * STRIDE; offset *= 2) sum += shuffle_xor(sum, offset);
}

// Adds up entries i, i + STEP, ... before `end`, UNROLL at a time. Loads past the end repeat the
// batch's first entry: a branch between two loads would make the second wait for the first.
template <u32 STEP, typename Sum, typename Part, typename Offset, typename In>
__device__ __forceinline__ void walk(Sum& sum, Part part, Offset i, Offset end, In B) {
  constexpr u32 UNROLL = Part::unroll;
  while (i < end) {
    const Offset left = end - i;
    Scalar value[UNROLL];
    u32 column[UNROLL];
    Sum factor[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const Offset entry = u * STEP < left ? i + u * STEP : i;
      value[u] = part.value(entry);
      column[u] = part.column(entry);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) factor[u] = B[column[u]];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) multiply_add(sum, u * STEP < left, value[u], factor[u]);
    if (left <= UNROLL * STEP) break;
    i += UNROLL * STEP;
  }
}
