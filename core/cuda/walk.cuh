#pragma once
#include "columns.cuh"
#include "dense.cuh"
#include "values.cuh"

// Adds up entries i, i + STEP, ... before `end`, with UNROLL of them in flight. Loads past the end
// repeat the batch's first entry instead of branching: a branch between two loads would make the
// second wait for the first.
template <int STEP, int UNROLL, typename T, int V, typename Offset, typename Unit, typename Values,
          typename In>
__device__ __forceinline__ void walk(Pack<T, V>& sum, Offset i, Offset end, const Unit& unit,
                                     Values values, In input) {
  while (i < end) {
    const Offset left = end - i;
    T value[UNROLL];
    u32 column[UNROLL];
    Pack<T, V> x[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const Offset entry = u * STEP < left ? i + u * STEP : i;
      value[u] = values.at(entry);
      column[u] = unit.at(entry);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) x[u] = input.at(column[u]);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) multiply_add(sum, u * STEP < left, value[u], x[u]);
    if (left <= UNROLL * STEP) break;
    i += UNROLL * STEP;
  }
}
