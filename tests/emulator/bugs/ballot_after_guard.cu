// Lanes past the end skip a ballot whose mask names them, and come to a barrier instead.
// launch: <<<1, 32>>>
// argument: x read-only f32 20 random
// argument: y output f32 20
// argument: size i32 value 20
extern "C" __global__ void ballot_after_guard(const float* x, float* y, int size) {
  __shared__ float first;
  const int lane = threadIdx.x;
  if (lane == 0) first = x[0];
  if (lane < size) {
    const unsigned positive = __ballot_sync(0xffffffffu, x[lane] > 0);  // BUG: missing-lanes
    y[lane] = __popc(positive & ((1u << lane) - 1));
  }
  __syncwarp();  // ALSO: missing-lanes
  if (lane == 1) y[1] += first;
}
