#pragma once
#include "matrices_columns.cuh"
#include "rounded.cuh"

// The dense matrix D = epilogue(row, column, alpha * A * B, beta * C, user), row-major, where D may
// be C. C is not read when beta is 0; threads past the last column store nothing.
template <u32 V>
struct Output {
  Dense* D;
  const Dense* C;
  u32 column, streamed;
  Scalar alpha, beta;
  User user;
  __device__ __forceinline__ void store(u32 row, const Pack<V>& sum) const {
    if (column >= COLUMNS) return;
    const size_t first = size_t(row) * COLUMNS + column;
    const Pack<V> old = load_columns_if<V>(beta != 0, C + first);
    Pack<V> result;
    for (u32 v = 0; v < V; ++v) {
      const Scalar scaled = beta == 0 ? Scalar(0) : rounded(beta, old.at[v]);
      result.at[v] = epilogue(row, column + v, rounded(alpha, sum.at[v]), scaled, user);
    }
    store_columns(D + first, result, streamed);
  }
};
