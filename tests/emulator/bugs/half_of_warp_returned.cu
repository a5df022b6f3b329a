// Lanes without a row return before a shuffle that reads from one of them.
// launch: <<<1, 64>>>
// argument: x read-only f32 352 random
// argument: y output f32 44
// argument: rows i32 value 44
extern "C" __global__ void half_of_warp_returned(const float* x, float* y, int rows) {
  const int row = threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[row * 8 + i];
  const float next = __shfl_down_sync(0xffffffffu, sum, 1);  // BUG: missing-lanes, inactive-lane
  y[row] = row % 32 < 31 ? next - sum : 0;
}
