#pragma once
#include "rows.cuh"
#include "values.cuh"

// DIA: value d * row_count + position belongs to column row + diagonals[d]. NaN marks the slots
// without an entry, so nothing outside of the matrix is touched.
template <typename Mapping, typename Rows, typename Values, typename In, typename Out>
__device__ __forceinline__ void dia(u32 block, u32 row_count, Rows rows,
                                    const int* __restrict__ diagonals, u32 diagonal_count,
                                    Values values, In input, Out output) {
  constexpr u32 STRIDE = Mapping::column_lanes, UNROLL = Mapping::unroll;
  const u32 position = block * (Mapping::block_threads / STRIDE) + threadIdx.x / STRIDE;
  if (position >= row_count) return;
  const u32 row = rows.at(position);
  typename In::Sum sum{};
  for (u32 d = 0; d < diagonal_count; d += UNROLL) {
    const u32 left = diagonal_count - d;
    typename Values::Scalar value[UNROLL];
    u32 column[UNROLL];
    typename In::Sum x[UNROLL];
    // Loads past the end repeat the batch's first diagonal instead of branching.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const u32 diagonal = u < left ? d + u : d;
      value[u] = values.at(u64(diagonal) * row_count + position);
      column[u] = row + __ldg(diagonals + diagonal);
    }
    // Empty slots read the first row, not a row outside: a load that need not wait for a branch.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) x[u] = input.at(value[u] == value[u] ? column[u] : 0);
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      multiply_add(sum, u < left && value[u] == value[u], value[u], x[u]);
    }
  }
  output.store(row, sum);
}
