#pragma once
// Block CSR with dense square blocks stored by rows, by the tensor cores: a warp has a row of
// blocks, and takes 8 of their columns at a time. By mma.m16n8k8 it adds up C transposed: B
// transposed times the blocks transposed. A thread gets two rows of each of its columns of C.
#define Offset TYPE(block_row_offsets)
constexpr u32 AT_ONCE = 8 / SIDE;  // blocks
const u32 block_row = block * (BLOCK / 32) + threadIdx.x / 32;
const u32 group = threadIdx.x % 32 / 4, first_k = threadIdx.x % 4 * 2;

if (block_row * SIDE < row_count) {
  const Offset begin = __ldg(block_row_offsets + block_row);
  const Offset end = __ldg(block_row_offsets + block_row + 1);
  BASE_OF(block_row);
  Sum sum[2] = {};
  for (Offset b = begin; has_tensor_cores() && b < end; b += STEPS * AT_ONCE) {
    Stored<VECTOR> factor[STEPS][2];
    u32 value[STEPS];
#pragma unroll
    for (u32 step = 0; step < STEPS; ++step) {
      const u32 ahead = step * AT_ONCE + first_k / SIDE;
      const bool live = first_k < AT_ONCE * SIDE && ahead < end - b;
      const u32 block_column = COLUMN(b + ahead, live);
      const u32 column = block_column * SIDE + first_k % SIDE;
#pragma unroll
      for (u32 i = 0; i < 2; ++i) {
        const bool has_column = live && column + i < column_count;
        factor[step][i] = stored_operand_if(has_column, input, column + i);
      }
      const size_t slot = (size_t(b + ahead) * SIDE + group) * SIDE + first_k % SIDE;
      const bool has_row = live && group < SIDE;
      const u32 pair = VALUE_PAIR(slot, has_row);
      value[step] = entries_or_zeros(pair);
    }
#pragma unroll
    for (u32 step = 0; step < STEPS; ++step) {
#pragma unroll
      for (u32 w = 0; w < VECTOR / 2; ++w) {
        const u32 x = factor[step][0].words[w], next_x = factor[step][1].words[w];
        const u32 below = __byte_perm(x, next_x, 0x5410), above = __byte_perm(x, next_x, 0x7632);
        multiply_add_tile(sum[0].at[2 * w], sum[1].at[2 * w], sum[0].at[2 * w + 1],
                          sum[1].at[2 * w + 1], below, above, value[step]);
      }
    }
    if (end - b <= STEPS * AT_ONCE) break;
  }
#pragma unroll
  for (u32 i = 0; i < 2; ++i) {
    const u32 row = first_k + i, position = block_row * SIDE + row;
    if (row >= SIDE || position >= row_count) break;
    // A slot without an entry must not meet an infinite element of B, with which zero makes NaN.
    bool is_nan = !has_tensor_cores();
    for (u32 v = 0; v < VECTOR; ++v) is_nan |= sum[i].at[v] != sum[i].at[v];
    if (is_nan) {
      sum[i] = {};
      for (Offset b = begin; b < end; ++b) {
        const u32 block_column = COLUMN(b, true);
        const u32 column = block_column * SIDE;
#pragma unroll
        for (u32 j = 0; j < SIDE; ++j) {
          const size_t slot = (size_t(b) * SIDE + row) * SIDE + j;
          const Scalar value = VALUE(slot, true);
          const Sum factor = OPERAND(true, column + j < column_count ? column + j : column);
          multiply_add(sum[i], value == value, value, factor);
        }
      }
    }
    output.store(ROW(position), sum[i]);
  }
}
