#pragma once
#include "types.cuh"

// DIA for SpMV. A warp has a slice of 32 * ROWS rows, in which a thread has those 32 apart, so that
// a warp's loads of x and stores of y are of neighbours. A diagonal's values lie slice by slice,
// thread by thread, so that each thread takes its own by vector loads. NaN marks the slots without
// an entry and those past the last row.
template <typename Part, typename Out>
__device__ __forceinline__ void dia_rows(Part part, u32 block, u32 row_count, u32 column_count,
                                         const int* diagonals, u32 diagonal_count, const Dense* x,
                                         Out output) {
  constexpr u32 ROWS = Part::rows_per_thread, UNROLL = Part::unroll, SLICE = 32 * ROWS;
  const u32 thread = block * BLOCK + threadIdx.x;
  const u32 first = thread / 32 * SLICE + thread % 32;
  if (first >= row_count) return;
  const size_t stride = (size_t(row_count) + SLICE - 1) / SLICE * SLICE;
  u32 row[ROWS];
  Scalar sum[ROWS] = {};
#pragma unroll
  for (u32 r = 0; r < ROWS; ++r) {
    const u32 position = first + r * 32;
    row[r] = part.row(position < row_count ? position : first);
  }
  for (u32 d = 0; d < diagonal_count; d += UNROLL) {
    const u32 left = diagonal_count - d;
    Scalar value[UNROLL][ROWS], factor[UNROLL][ROWS];
    // Loads past the end repeat the batch's first diagonal, and slots outside of the matrix load
    // the first x. No load waits for a branch or for a value.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      const u32 diagonal = u < left ? d + u : d;
      part.values_at(diagonal * stride + size_t(thread) * ROWS, value[u]);
      const u32 offset = __ldg(diagonals + diagonal);
#pragma unroll
      for (u32 r = 0; r < ROWS; ++r) {
        const u32 column = row[r] + offset;
        factor[u][r] = x[column < column_count ? column : 0];
      }
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
#pragma unroll
      for (u32 r = 0; r < ROWS; ++r) {
        multiply_add(sum[r], u < left && value[u][r] == value[u][r], value[u][r], factor[u][r]);
      }
    }
  }
#pragma unroll
  for (u32 r = 0; r < ROWS; ++r)
    if (first + r * 32 < row_count) output.store(row[r], sum[r]);
}

// DIA for SpMM: a diagonal's values lie by position. Value p of diagonal d belongs to column
// row + diagonals[d]. NaN marks the slots without an entry, so nothing outside is touched.
template <typename Part, typename In, typename Out>
__device__ __forceinline__ void dia_columns(Part part, u32 block, u32 row_count,
                                            const int* diagonals, u32 diagonal_count, In input,
                                            Out output) {
  constexpr u32 STRIDE = Part::column_lanes, UNROLL = Part::unroll;
  const u32 position = block * (BLOCK / STRIDE) + threadIdx.x / STRIDE;
  if (position >= row_count) return;
  const u32 row = part.row(position);
  const size_t stride = (size_t(row_count) + 31) / 32 * 32;
  typename Part::Sum sum{};
  for (u32 d = 0; d < diagonal_count; d += UNROLL) {
    const u32 left = diagonal_count - d;
    Scalar value[UNROLL];
    u32 column[UNROLL];
    typename Part::Sum x[UNROLL];
    bool live[UNROLL];
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      live[u] = u == 0 || u < left;
      value[u] = part.value((d + u) * stride + position, live[u]);
      column[u] = row + __ldg(diagonals + (live[u] ? d + u : d));
    }
    // Empty slots may be of columns outside.
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) {
      live[u] = live[u] && value[u] == value[u];
      x[u] = operand_if(live[u], input, column[u]);
    }
#pragma unroll
    for (u32 u = 0; u < UNROLL; ++u) multiply_add(sum, live[u], value[u], x[u]);
  }
  output.store(row, sum);
}
