#pragma once
#include "dense.cuh"
#include "rows.cuh"
#include "values.cuh"

// Diagonals: value d * row_count + position belongs to column row + diagonals[d]. NaN marks the
// slots without an entry, so nothing outside the matrix is touched.
template <int BLOCK, int STRIDE, int UNROLL, typename T, int V, typename Rows, typename Values,
          typename In, typename Out>
__device__ __forceinline__ void dia(u32 block, u32 row_count, Rows rows,
                                    const int* __restrict__ diagonals, u32 diagonal_count,
                                    Values values, In input, Out output) {
  const u32 position = place<BLOCK, STRIDE>(block);
  if (position >= row_count) return;
  const u32 row = rows.at(position);
  auto sum = zero_pack<T, V>();
#pragma unroll UNROLL
  for (u32 d = 0; d < diagonal_count; ++d) {
    const T value = values.at(u64(d) * row_count + position);
    const bool present = value == value;
    // Empty slots read the first row, not a row outside: a load that need not wait for a branch.
    multiply_add(sum, present, value, input.at(present ? row + __ldg(diagonals + d) : 0));
  }
  output.store(row, sum);
}
