#pragma once
#include "reduce.cuh"
#include "rows.cuh"
#include "walk.cuh"

// SELL-C-sigma (Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014): slices of HEIGHT rows, stored
// by columns. Every row stops at its own length, so padding is never read.
template <int BLOCK, int HEIGHT, int LANES, int STRIDE, int UNROLL, typename T, int V,
          typename Offset, typename Length, typename Rows, typename Columns, typename Values,
          typename In, typename Out>
__device__ __forceinline__ void sell(u32 block, u32 row_count, Rows rows,
                                     const Offset* __restrict__ slices,
                                     const Length* __restrict__ lengths, Columns columns,
                                     Values values, In input, Out output) {
  // Neighbouring threads take neighbouring rows of a slice, where the entries lie side by side.
  constexpr u32 GROUP = HEIGHT * LANES * STRIDE < 32 ? HEIGHT : 32 / (LANES * STRIDE);
  const u32 lane = threadIdx.x / (STRIDE * GROUP) % LANES;
  const u32 position =
      place<BLOCK, STRIDE * GROUP * LANES>(block) * GROUP + threadIdx.x / STRIDE % GROUP;
  const bool live = position < row_count;

  auto sum = zero_pack<T, V>();
  if (live) {
    const u32 length = __ldg(lengths + position);
    const u32 slice = position / HEIGHT;
    const Offset first = __ldg(slices + slice) + position % HEIGHT;
    const Offset end = first + Offset(length) * HEIGHT;
    walk<LANES * HEIGHT, UNROLL>(sum, first + lane * HEIGHT, end, columns.of(slice), values, input);
  }
  reduce_lanes<LANES, STRIDE * GROUP>(sum);
  if (live && lane == 0) output.store(rows.at(position), sum);
}
