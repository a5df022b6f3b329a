// Only lanes with long rows reduce, and their mask names those with short rows too.
// launch: <<<1, 32>>>
// matrix: rows=32 columns=100 mean=8
// argument: row_ptr read-only i32 csr-offsets
// argument: x read-only f32 32 random
// argument: y output f32 32
extern "C" __global__ void mask_names_other_branch(const int* row_ptr, const float* x, float* y) {
  const int lane = threadIdx.x;
  float value = x[lane];
  if (row_ptr[lane + 1] - row_ptr[lane] > 8) {
    value = __shfl_xor_sync(0xffffffffu, value, 1);  // BUG: missing-lanes, inactive-lane
    y[lane] = value * 2;
  } else {
    y[lane] = value / 3;
  }
}
