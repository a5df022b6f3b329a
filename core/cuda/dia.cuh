#pragma once
#include "types.cuh"

// DIA: value d * row_count + position belongs to column row + diagonals[d]. NaN marks the slots
// without an entry, so nothing outside of the matrix is touched.
template <typename Part, typename In, typename Out>
__device__ __forceinline__ void dia(Part part, u32 block, u32 row_count, const int* diagonals,
                                    u32 diagonal_count, In input, Out output) {
  constexpr u32 STRIDE = Part::column_lanes, UNROLL = Part::unroll;
  const u32 position = block * (BLOCK / STRIDE) + threadIdx.x / STRIDE;
  if (position >= row_count) return;
  const u32 row = part.row(position);
  typename Part::Sum sum{};
  for (u32 d = 0; d < diagonal_count; d += UNROLL) {
    const u32 left = diagonal_count - d;
    Scalar value[UNROLL];
    u32 column[UNROLL];
    typename Part::Sum x[UNROLL];
    // Loads past the end repeat the batch's first diagonal instead of branching.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const u32 diagonal = u < left ? d + u : d;
      value[u] = part.value(size_t(diagonal) * row_count + position);
      column[u] = row + __ldg(diagonals + diagonal);
    }
    // Empty slots read the first row, not a row outside: a load that need not wait for a branch.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) x[u] = input[value[u] == value[u] ? column[u] : 0];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      multiply_add(sum, u < left && value[u] == value[u], value[u], x[u]);
    }
  }
  output.store(row, sum);
}
