// The step of a loop over the entries is computed from half of the blocks, and there is one block.
// launch: <<<1, 32>>>
// argument: values read-only f32 256 random
// argument: y output f32 32
// argument: entries i32 value 256
extern "C" __global__ void stride_of_zero(const float* values, float* y, int entries) {
  const int step = gridDim.x / 2 * blockDim.x;
  float sum = 0;
  for (int i = threadIdx.x; i < entries; i += step) {  // BUG: over-budget
    sum += values[i];                                  // BUG: over-budget
  }
  y[threadIdx.x] = sum;
}
