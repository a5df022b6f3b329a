#pragma once
#define Offset TYPE(row_offsets)
#define STEP LANES
#define LANE_STRIDE STRIDE
#if LANES > 1
#define FIRST first + lane
#else
#define FIRST first
#endif
#include "lanes.cuh"
Sum sum{};
if (position < row_count) {
  const Offset first = __ldg(row_offsets + position), end = __ldg(row_offsets + position + 1);
  BASE_OF(position);
  #include "walk.cuh"
}
#include "row_sum.cuh"
