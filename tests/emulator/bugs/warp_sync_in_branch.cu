// Lanes in a branch wait for all lanes of the warp, some of which come to a vote instead.
// launch: <<<1, 32>>>
// argument: x read-only f32 24 random
// argument: y output f32 24
// argument: size i32 value 24
extern "C" __global__ void warp_sync_in_branch(const float* x, float* y, int size) {
  __shared__ float tile[32];
  const int lane = threadIdx.x;
  if (lane < size) {
    tile[lane] = x[lane];
    __syncwarp();  // BUG: missing-lanes, divergent-barrier, deadlock
    y[lane] = tile[size - 1 - lane];
  }
  if (__any_sync(0xffffffffu, lane < size && tile[lane] > 2)) y[0] = 0;  // ALSO: missing-lanes
}
