#pragma once
#include "types.cuh"

// Sums of V neighbouring columns of C.
template <u32 V>
struct alignas(V < 4 ? sizeof(Scalar) * V : 16) Pack {
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

// V neighbouring columns of a row of B or C as they lie in memory, moved by one load or store.
template <u32 V>
struct alignas(sizeof(Dense) * V) Stored {
  Dense at[V];
  __device__ __forceinline__ Pack<V> widened() const {
    Pack<V> pack;
#pragma unroll
    for (u32 v = 0; v < V; ++v) pack.at[v] = at[v];
    return pack;
  }
};

// The dense matrix B, row-major. A thread handles V columns from `column`; threads past the last
// column load zeros.
template <u32 V>
struct Input {
  const Dense* __restrict__ B;
  u32 column;
  __device__ __forceinline__ Pack<V> operator[](u32 row) const {
    static_assert(COLUMNS % V == 0, "vector loads need aligned rows");
    if (COLUMNS % (32 * V) != 0 && column >= COLUMNS) return Pack<V>{};
    return reinterpret_cast<const Stored<V>*>(B + size_t(row) * COLUMNS + column)->widened();
  }
};

// The dense matrix C = alpha * A * B + beta * C, row-major, whose elements are rounded when stored.
// The old C is not read when beta is 0; threads past the last column store nothing.
template <u32 V>
struct Output {
  Dense* __restrict__ C;
  u32 column;
  Scalar alpha, beta;
  __device__ __forceinline__ void store(u32 row, const Pack<V>& sum) const {
    if (column >= COLUMNS) return;
    auto* target = reinterpret_cast<Stored<V>*>(C + size_t(row) * COLUMNS + column);
    Pack<V> result;
#pragma unroll
    for (u32 v = 0; v < V; ++v) result.at[v] = alpha * sum.at[v];
    if (beta != 0) multiply_add(result, true, beta, target->widened());
    Stored<V> stored;
#pragma unroll
    for (u32 v = 0; v < V; ++v) stored.at[v] = Dense::nearest(result.at[v]);
    *target = stored;
  }
};
