#pragma once
#include "types.cuh"

// Block CSR with dense square blocks stored by rows; neighbouring threads share a row's blocks. NaN
// marks the slots of a block without an entry.
template <typename Part, typename Offset, typename In, typename Out>
__device__ __forceinline__ void bcsr(Part part, u32 block, u32 row_count,
                                     const Offset* block_row_offsets, In input, Out output) {
  constexpr u32 SIDE = Part::block_side;
  constexpr u32 LANES = Part::lanes_per_row, STRIDE = Part::column_lanes, THREADS = LANES * STRIDE;
  const u32 position = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
  const u32 lane = threadIdx.x / STRIDE % LANES;
  const bool live = position < row_count;

  typename Part::Sum sum{};
  if (live) {
    const u32 block_row = position / SIDE;
    const Offset end = __ldg(block_row_offsets + block_row + 1);
    part.with_base_of(block_row);
    for (Offset b = __ldg(block_row_offsets + block_row) + lane; b < end; b += LANES) {
      const u32 column = part.column(b) * SIDE;
      const size_t first = (size_t(b) * SIDE + position % SIDE) * SIDE;
#pragma unroll
      for (u32 j = 0; j < SIDE; ++j) {
        const auto value = part.value(first + j);
        const bool present = value == value;
        // Empty slots read the block's first column, which exists.
        multiply_add(sum, present, value, input[present ? column + j : column]);
      }
    }
  }
  reduce_lanes<LANES, STRIDE>(sum);
  if (live && lane == 0) output.store(part.row(position), sum);
}
