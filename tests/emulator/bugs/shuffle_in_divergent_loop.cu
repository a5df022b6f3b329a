// Each lane loops over its own row, and all lanes are expected at a shuffle in the loop.
// launch: <<<1, 32>>>
// matrix: rows=32 columns=100 mean=6
// argument: row_ptr read-only i32 csr-offsets
// argument: values read-only f32 csr-values
// argument: y output f32 32
extern "C" __global__ void shuffle_in_divergent_loop(const int* row_ptr, const float* values, float* y) {
  const int row = threadIdx.x;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
    const float value = values[i];
    sum += value + __shfl_xor_sync(0xffffffffu, value, 1);  // BUG: missing-lanes, inactive-lane
  }
  y[row] = sum;
}
