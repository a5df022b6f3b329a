#pragma once
#include "types.cuh"

// SELL-C-sigma (Kreutzer et al., SISC 36(5), 2014). Every row stops before its slice's padding.
template <typename Part, typename Offset, typename Length, typename In, typename Out>
__device__ __forceinline__ void sell(Part part, u32 block, u32 row_count, const Length* row_lengths,
                                     const Offset* slice_offsets, In input, Out output) {
  constexpr u32 HEIGHT = Part::slice_height, LANES = Part::lanes_per_row;
  // Neighbouring threads take neighbouring rows of a slice, where the entries lie side by side.
  constexpr u32 STRIDE = Part::column_lanes, WARP_ROWS = 32 / (LANES * STRIDE);
  constexpr u32 GROUP = HEIGHT < WARP_ROWS ? HEIGHT : WARP_ROWS, THREADS = STRIDE * GROUP * LANES;
  const u32 lane = threadIdx.x / (STRIDE * GROUP) % LANES;
  const u32 group = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
  const u32 position = group * GROUP + threadIdx.x / STRIDE % GROUP;
  typename Part::Sum sum{};
  if (position < row_count) {
    const u32 slice = position / HEIGHT, length = __ldg(row_lengths + position);
    const Offset first = __ldg(slice_offsets + slice) + position % HEIGHT;
    const Offset end = first + Offset(length) * HEIGHT;
    walk<LANES * HEIGHT>(sum, part.with_base_of(slice), first + lane * HEIGHT, end, input);
  }
  reduce_lanes<LANES, STRIDE * GROUP>(sum);
  if (position < row_count && lane == 0) output.store(part.row(position), sum);
}
