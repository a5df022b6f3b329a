#pragma once
// Block CSR with dense square blocks stored by rows; neighbouring threads share a row's blocks.
// NaN marks the slots of a block without an entry.
#define Offset TYPE(block_row_offsets)
#define LANE_STRIDE 1
#include "lanes.cuh"
Scalar sum{};
if (position < row_count) {
  const u32 block_row = position / SIDE;
  const Offset end = __ldg(block_row_offsets + block_row + 1);
  BASE_OF(block_row);
#if LANES > 1
  for (Offset b = __ldg(block_row_offsets + block_row) + lane; b < end; b += LANES) {
#else
  for (Offset b = __ldg(block_row_offsets + block_row); b < end; ++b) {
#endif
    const u32 block_column = COLUMN(b, true);
    const u32 column = block_column * SIDE;
    const size_t slot = (size_t(b) * SIDE + position % SIDE) * SIDE;
    Scalar value[SIDE], factor[SIDE];
    VALUES_AT(slot, value);
    // The last blocks may reach past the last column, and only their first surely exists.
#pragma unroll
    for (u32 j = 0; j < SIDE; ++j) factor[j] = x[column + j < column_count ? column + j : column];
#pragma unroll
    for (u32 j = 0; j < SIDE; ++j) multiply_add(sum, value[j] == value[j], value[j], factor[j]);
  }
}
#include "row_sum.cuh"
