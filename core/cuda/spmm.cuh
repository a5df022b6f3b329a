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
  const Scalar* __restrict__ B;
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

// The first of the columns of C that a thread holds.
template <u32 V>
__device__ constexpr u32 column_of(const Output<V>& output) { return output.column; }

template <u32 V>
__device__ __forceinline__ Pack<V> shuffle_up(const Pack<V>& sum, u32 offset) {
  Pack<V> other;
#pragma unroll
  for (u32 v = 0; v < V; ++v) other.at[v] = __shfl_up_sync(FULL_WARP, sum.at[v], offset);
  return other;
}

// Reads past L1, which may hold what the address held before.
template <u32 V>
__device__ __forceinline__ Pack<V> load_from_l2(const Pack<V>* address) {
  Pack<V> pack;
#pragma unroll
  for (u32 v = 0; v < V; ++v) pack.at[v] = __ldcg(address->at + v);
  return pack;
}

// Sums over LANES lanes that are STRIDE lanes apart. All lanes of the warp must take part.
template <u32 LANES, u32 STRIDE, u32 V>
__device__ __forceinline__ void reduce_lanes(Pack<V>& sum) {
#pragma unroll
  for (u32 d = STRIDE; d < LANES * STRIDE; d *= 2) {
#pragma unroll
    for (u32 v = 0; v < V; ++v) sum.at[v] += __shfl_xor_sync(0xffffffff, sum.at[v], d);
  }
}

// Adds up entries i, i + STEP, ... before `end`, UNROLL at a time. Loads past the end repeat the
// batch's first entry: a branch between two loads would make the second wait for the first.
template <u32 STEP, u32 V, typename Part, typename I, u32 UNROLL = Part::unroll>
__device__ __forceinline__ void walk(Pack<V>& sum, Part part, I i, I end, Input<V> B) {
  for (; i < end; i += UNROLL * STEP) {
    Scalar value[UNROLL];
    Pack<V> factor[UNROLL];
    u32 column[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const I entry = u * STEP < end - i ? i + u * STEP : i;
      value[u] = part.value(entry);
      column[u] = part.column(entry);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) factor[u] = B[column[u]];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) multiply_add(sum, u * STEP < end - i, value[u], factor[u]);
    if (end - i <= UNROLL * STEP) break;
  }
}
