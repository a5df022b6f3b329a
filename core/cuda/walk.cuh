#pragma once
#include "columns.cuh"
#include "values.cuh"

// Adds up entries i, i + STEP, ... before `end`, with UNROLL of them in flight. Loads past the end
// repeat the batch's first entry instead of branching: a branch between two loads would make the
// second wait for the first.
template <u32 STEP, u32 UNROLL, typename Sum, typename Offset, typename Columns, typename Values,
          typename In>
__device__ __forceinline__ void walk(Sum& sum, Offset i, Offset end, Columns columns, Values values,
                                     In input) {
  while (i < end) {
    const Offset left = end - i;
    typename Values::Scalar value[UNROLL];
    u32 column[UNROLL];
    Sum x[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const Offset entry = u * STEP < left ? i + u * STEP : i;
      value[u] = values.at(entry);
      column[u] = columns.at(entry);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) x[u] = input.at(column[u]);
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) multiply_add(sum, u * STEP < left, value[u], x[u]);
    if (left <= UNROLL * STEP) break;
    i += UNROLL * STEP;
  }
}
