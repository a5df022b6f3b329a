// The mask of a group of eight lanes is that of its neighbour.
// launch: <<<1, 32>>>
// argument: x read-only f32 32 random
// argument: y output f32 4
extern "C" __global__ void mask_of_group_shifted(const float* x, float* y) {
  const int group = threadIdx.x / 8;
  const unsigned mask = 0xffu << (8 * (group ^ 1));
  float sum = x[threadIdx.x];
  for (int step = 4; step > 0; step /= 2) {
    sum += __shfl_xor_sync(mask, sum, step, 8);  // BUG: missing-lanes, inactive-lane
  }
  if (threadIdx.x % 8 == 0) y[group] = sum;
}
