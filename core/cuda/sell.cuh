#pragma once
#define Offset TYPE(slice_offsets)
#define STEP LANES * HEIGHT
#define LANE_STRIDE STRIDE * GROUP
#if LANES > 1
#define FIRST first + lane * HEIGHT
#else
#define FIRST first
#endif
#if ALL_ROWS
#define position row
#endif
// SELL-C-sigma (Kreutzer et al., SISC 36(5), 2014). Every row stops before its slice's padding.
// Neighbouring threads take neighbouring rows of a slice, where the entries lie side by side.
constexpr u32 THREADS = LANES * STRIDE * GROUP;
#if LANES > 1
const u32 lane = threadIdx.x / STRIDE / GROUP % LANES;
#endif
const u32 group = block * (BLOCK / THREADS) + threadIdx.x / THREADS;
const u32 position = group * GROUP + threadIdx.x / STRIDE % GROUP;
Sum sum{};
if (position < row_count) {
  const u32 slice = position / HEIGHT, length = __ldg(row_lengths + position);
  const Offset first = __ldg(slice_offsets + slice) + position % HEIGHT;
  const Offset end = first + Offset(length) * HEIGHT;
  BASE_OF(slice);
  #include "walk.cuh"
}
#include "row_sum.cuh"
