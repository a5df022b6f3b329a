#pragma once
#include "types.cuh"

// Block CSR with dense square blocks stored by rows; neighbouring threads share a row's blocks. NaN
// marks the slots of a block without an entry.
template <typename Part, typename Offset, typename Out>
__device__ __forceinline__ void bcsr_rows(Part part, u32 block, u32 row_count, u32 column_count,
                                          const Offset* block_row_offsets, const Dense* x,
                                          Out output) {
  constexpr u32 SIDE = Part::block_side, LANES = Part::lanes_per_row;
  const u32 position = block * (BLOCK / LANES) + threadIdx.x / LANES;
  const u32 lane = threadIdx.x % LANES;
  const bool live = position < row_count;

  Scalar sum{};
  if (live) {
    const u32 block_row = position / SIDE;
    const Offset end = __ldg(block_row_offsets + block_row + 1);
    part.with_base_of(block_row);
    for (Offset b = __ldg(block_row_offsets + block_row) + lane; b < end; b += LANES) {
      const u32 column = part.column(b, true) * SIDE;
      Scalar value[SIDE], factor[SIDE];
      part.values_at((size_t(b) * SIDE + position % SIDE) * SIDE, value);
      // The last blocks may reach past the last column, and only their first surely exists.
#pragma unroll
      for (u32 j = 0; j < SIDE; ++j) factor[j] = x[column + j < column_count ? column + j : column];
#pragma unroll
      for (u32 j = 0; j < SIDE; ++j) multiply_add(sum, value[j] == value[j], value[j], factor[j]);
    }
  }
  reduce_lanes<LANES, 1>(sum);
  if (live && lane == 0) output.store(part.row(position), sum);
}

// The same for SpMM, where a thread has all rows of a block: each row of B is loaded once for them.
template <typename Part, typename Offset, typename In, typename Out>
__device__ __forceinline__ void bcsr_columns(Part part, u32 block, u32 row_count, u32 column_count,
                                             const Offset* block_row_offsets, In input,
                                             Out output) {
  constexpr u32 SIDE = Part::block_side;
  constexpr u32 LANES = Part::lanes_per_row, STRIDE = Part::column_lanes, THREADS = LANES * STRIDE;
  const u32 block_row = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
  const u32 lane = threadIdx.x / STRIDE % LANES;

  typename Part::Sum sum[SIDE] = {};
  if (block_row * SIDE < row_count) {
    const Offset end = __ldg(block_row_offsets + block_row + 1);
    part.with_base_of(block_row);
    for (Offset b = __ldg(block_row_offsets + block_row) + lane; b < end; b += LANES) {
      const u32 column = part.column(b, true) * SIDE;
      typename Part::Sum factor[SIDE];
      // As above, the block's first column surely exists.
#pragma unroll
      for (u32 j = 0; j < SIDE; ++j) {
        factor[j] = operand_if(true, input, column + j < column_count ? column + j : column);
      }
#pragma unroll
      for (u32 r = 0; r < SIDE; ++r) {
        Scalar value[SIDE];
        part.values_at((size_t(b) * SIDE + r) * SIDE, value);
#pragma unroll
        for (u32 j = 0; j < SIDE; ++j) {
          multiply_add(sum[r], value[j] == value[j], value[j], factor[j]);
        }
      }
    }
  }
#pragma unroll
  for (u32 r = 0; r < SIDE; ++r) {
    reduce_lanes<LANES, STRIDE>(sum[r]);
    const u32 position = block_row * SIDE + r;
    if (lane == 0 && position < row_count) output.store(part.row(position), sum[r]);
  }
}
