#pragma once
#include "columns.cuh"
#include "reduce.cuh"
#include "rows.cuh"
#include "values.cuh"

// Block CSR with dense square blocks stored by rows; neighbouring threads share a row's blocks. NaN
// marks the slots of a block without an entry.
template <typename Mapping, typename Offset, typename Rows, typename Columns, typename Values,
          typename In, typename Out>
__device__ __forceinline__ void bcsr(u32 block, u32 row_count, Rows rows,
                                     const Offset* __restrict__ block_row_offsets, Columns columns,
                                     Values values, In input, Out output) {
  constexpr u32 SIDE = Mapping::block_side;
  constexpr u32 LANES = Mapping::lanes_per_row, STRIDE = Mapping::column_lanes;
  constexpr u32 THREADS = LANES * STRIDE;
  const u32 position = block * (Mapping::block_threads / THREADS) + threadIdx.x / THREADS;
  const u32 lane = threadIdx.x / STRIDE % LANES;
  const bool live = position < row_count;

  typename In::Sum sum{};
  if (live) {
    const u32 block_row = position / SIDE;
    const Offset end = __ldg(block_row_offsets + block_row + 1);
    const auto unit = columns.of(block_row);
    for (Offset b = __ldg(block_row_offsets + block_row) + lane; b < end; b += LANES) {
      const u32 column = unit.at(b) * SIDE;
      const u64 first = (u64(b) * SIDE + position % SIDE) * SIDE;
#pragma unroll
      for (u32 j = 0; j < SIDE; ++j) {
        const auto value = values.at(first + j);
        const bool present = value == value;
        // Empty slots read the block's first column, which exists.
        multiply_add(sum, present, value, input.at(present ? column + j : column));
      }
    }
  }
  reduce_lanes<LANES, STRIDE>(sum);
  if (live && lane == 0) output.store(rows.at(position), sum);
}
