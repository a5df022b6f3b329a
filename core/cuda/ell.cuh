#pragma once
#define LANE_STRIDE STRIDE
// ELLPACK (Kincaid, Oppe and Young, ITPACKV 2D, 1989), stored by rows: all have as many slots, a
// multiple of 4, so where a row begins follows from its position, and no load waits for offsets.
#include "lanes.cuh"
Sum sum{};
if (position < row_count) {
  const u32 first = position * fours_per_row, length = __ldg(row_lengths + position);
  BASE_OF(position);
#if LANES > 1
  u32 four = first + lane;
#else
  u32 four = first;
#endif
  const u32 end = first + fours_per_row, entries_end = first * 4 + length;
  #include "fours.cuh"
}
#include "row_sum.cuh"
