#pragma once
#if LANES > 1
REDUCE_LANES(sum, LANES, LANE_STRIDE);
if (position < row_count && lane == 0) {
#else
if (position < row_count) {
#endif
  STORE(position, sum);
}
