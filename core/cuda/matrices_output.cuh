#pragma once
#include "matrices.cuh"
#include "stored.cuh"

// The dense matrix C = alpha * A * B + beta * C, row-major. The old C is not read when beta is 0;
// threads past the last column store nothing.
template <u32 V>
struct Output {
  Scalar* __restrict__ C;
  u32 column, streamed;
  Scalar alpha, beta;
  __device__ __forceinline__ void store(u32 row, const Pack<V>& sum) const {
    if (column >= COLUMNS) return;
    auto* target = reinterpret_cast<Pack<V>*>(C + size_t(row) * COLUMNS + column);
    Pack<V> result;
    for (u32 v = 0; v < V; ++v) result.at[v] = alpha * sum.at[v];
    if (beta != 0) multiply_add(result, true, beta, Pack<V>(*target));
    store_result(target, result, streamed);
  }
};
