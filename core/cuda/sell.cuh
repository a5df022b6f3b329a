#pragma once
#include "reduce.cuh"
#include "rows.cuh"
#include "walk.cuh"

// SELL-C-sigma (Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014): slices of equally many rows,
// stored by columns. Every row stops at its own length, so padding is never read.
template <typename Mapping, typename Offset, typename Length, typename Rows, typename Columns,
          typename Values, typename In, typename Out>
__device__ __forceinline__ void sell(u32 block, u32 row_count, Rows rows,
                                     const Offset* __restrict__ slice_offsets,
                                     const Length* __restrict__ row_lengths, Columns columns,
                                     Values values, In input, Out output) {
  constexpr u32 HEIGHT = Mapping::slice_height, STRIDE = Mapping::column_lanes;
  constexpr u32 LANES = Mapping::lanes_per_row;
  // Neighbouring threads take neighbouring rows of a slice, where the entries lie side by side.
  constexpr u32 GROUP = HEIGHT * LANES * STRIDE < 32 ? HEIGHT : 32 / (LANES * STRIDE);
  constexpr u32 THREADS = STRIDE * GROUP * LANES;
  const u32 lane = threadIdx.x / (STRIDE * GROUP) % LANES;
  const u32 group = block * (Mapping::block_threads / THREADS) + threadIdx.x / THREADS;
  const u32 position = group * GROUP + threadIdx.x / STRIDE % GROUP;
  const bool live = position < row_count;

  typename In::Sum sum{};
  if (live) {
    const u32 length = __ldg(row_lengths + position);
    const u32 slice = position / HEIGHT;
    const Offset first = __ldg(slice_offsets + slice) + position % HEIGHT;
    const Offset end = first + Offset(length) * HEIGHT;
    walk<LANES * HEIGHT, Mapping::unroll>(sum, first + lane * HEIGHT, end, columns.of(slice),
                                          values, input);
  }
  reduce_lanes<LANES, STRIDE * GROUP>(sum);
  if (live && lane == 0) output.store(rows.at(position), sum);
}
