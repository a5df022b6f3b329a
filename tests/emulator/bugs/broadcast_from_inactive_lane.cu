// The lower half of a warp takes a value from the last lane, which is not with it.
// launch: <<<1, 32>>>
// argument: x read-only f32 32 random
// argument: y output f32 16
extern "C" __global__ void broadcast_from_inactive_lane(const float* x, float* y) {
  const int lane = threadIdx.x;
  const float value = x[lane];
  if (lane < 16) {
    y[lane] = value - __shfl_sync(0x0000ffffu, value, 31);  // BUG: inactive-lane; ALSO: uninitialised
  }
}
