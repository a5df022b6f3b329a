// The guard lets one row too many through.
// launch: <<<2, 64>>>
// argument: x read-only f32 100 random
// argument: y writable f32 100 random
// argument: rows i32 value 100
extern "C" __global__ void guard_off_by_one(const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row <= rows) {
    y[row] += 2 * x[row];  // BUG: out-of-bounds
  }
}
