#pragma once
// Block CSR with dense square blocks stored by rows. NaN marks the slots of a block without an
// entry. A thread has all rows of a block: each row of B is loaded once for them.
#define Offset TYPE(block_row_offsets)
constexpr u32 THREADS = LANES * STRIDE;
const u32 block_row = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
const u32 lane = threadIdx.x / STRIDE % LANES;

Sum sum[SIDE] = {};
if (block_row * SIDE < row_count) {
  const Offset end = __ldg(block_row_offsets + block_row + 1);
  BASE_OF(block_row);
  for (Offset b = __ldg(block_row_offsets + block_row) + lane; b < end; b += LANES) {
    const u32 block_column = COLUMN(b, true);
    const u32 column = block_column * SIDE;
    Sum factor[SIDE];
    // The last blocks may reach past the last column, and only their first surely exists.
#pragma unroll
    for (u32 j = 0; j < SIDE; ++j) {
      factor[j] = OPERAND(true, column + j < column_count ? column + j : column);
    }
#pragma unroll
    for (u32 r = 0; r < SIDE; ++r) {
      const size_t slot = (size_t(b) * SIDE + r) * SIDE;
      Scalar value[SIDE];
      VALUES_AT(slot, value);
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
  if (lane == 0 && position < row_count) output.store(ROW(position), sum[r]);
}
