#pragma once
#include "types.cuh"

// ELLPACK (Kincaid, Oppe and Young, ITPACKV 2D, 1989), stored by rows: all have as many slots, a
// multiple of 4, so where a row begins follows from its position, and no load waits for offsets.
template <typename Part, typename Length, typename In, typename Out>
__device__ __forceinline__ void ell(Part part, u32 block, u32 row_count, u32 fours_per_row,
                                    const Length* row_lengths, In input, Out output) {
  constexpr u32 LANES = Part::lanes_per_row, STRIDE = Part::column_lanes, THREADS = LANES * STRIDE;
  const u32 position = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
  const u32 lane = threadIdx.x / STRIDE % LANES;
  typename Part::Sum sum{};
  if (position < row_count) {
    const u32 first = position * fours_per_row, length = __ldg(row_lengths + position);
    walk_fours<LANES>(sum, part.with_base_of(position), first + lane, first + fours_per_row,
                      first * 4 + length, input);
  }
  reduce_lanes<LANES, STRIDE>(sum);
  if (position < row_count && lane == 0) output.store(part.row(position), sum);
}
