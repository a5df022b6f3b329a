#pragma once
#include "matrices_columns.cuh"

// The dense matrix D = alpha * A * B + beta * C, row-major, where D may be C. C is not read when
// beta is 0; threads past the last column store nothing.
template <u32 V>
struct Output {
  Dense* D;
  const Dense* C;
  u32 column, streamed;
  Scalar alpha, beta;
  __device__ __forceinline__ void store(u32 row, const Pack<V>& sum) const {
    if (column >= COLUMNS) return;
    const size_t first = size_t(row) * COLUMNS + column;
    Pack<V> result;
    for (u32 v = 0; v < V; ++v) result.at[v] = alpha * sum.at[v];
    if (beta != 0) multiply_add(result, true, beta, load_columns_if<V>(true, C + first));
    store_columns(D + first, result, streamed);
  }
};
