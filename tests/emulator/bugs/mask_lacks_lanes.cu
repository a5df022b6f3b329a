// All lanes of the warp execute a shuffle whose mask names the lower half.
// launch: <<<1, 32>>>
// argument: x read-only f32 32 random
// argument: y output f32 32
extern "C" __global__ void mask_lacks_lanes(const float* x, float* y) {
  float sum = x[threadIdx.x];
  for (int step = 8; step > 0; step /= 2) {
    sum += __shfl_xor_sync(0x0000ffffu, sum, step);  // BUG: missing-lanes
  }
  y[threadIdx.x] = sum;
}
