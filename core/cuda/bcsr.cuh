#pragma once
#include "columns.cuh"
#include "dense.cuh"
#include "reduce.cuh"
#include "rows.cuh"
#include "values.cuh"

// Block CSR with dense SIDE x SIDE blocks stored by rows; LANES threads share a row's blocks. NaN
// marks the slots of a block without an entry.
template <int BLOCK, int SIDE, int LANES, int STRIDE, typename T, int V, typename Offset,
          typename Rows, typename Columns, typename Values, typename In, typename Out>
__device__ __forceinline__ void bcsr(u32 block, u32 row_count, Rows rows,
                                     const Offset* __restrict__ offsets, Columns columns,
                                     Values values, In input, Out output) {
  const u32 position = place<BLOCK, LANES * STRIDE>(block);
  const u32 lane = threadIdx.x / STRIDE % LANES;
  const bool live = position < row_count;

  auto sum = zero_pack<T, V>();
  if (live) {
    const u32 block_row = position / SIDE;
    const Offset end = __ldg(offsets + block_row + 1);
    const auto unit = columns.of(block_row);
    for (Offset b = __ldg(offsets + block_row) + lane; b < end; b += LANES) {
      const u32 column = unit.at(b) * SIDE;
      const u64 first = (u64(b) * SIDE + position % SIDE) * SIDE;
#pragma unroll
      for (u32 j = 0; j < SIDE; ++j) {
        const T value = values.at(first + j);
        const bool present = value == value;
        // Empty slots read the block's first column, which exists.
        multiply_add(sum, present, value, input.at(present ? column + j : column));
      }
    }
  }
  reduce_lanes<LANES, STRIDE>(sum);
  if (live && lane == 0) output.store(rows.at(position), sum);
}
