// The old result is multiplied by beta even where beta is zero and there is no old result.
// launch: <<<2, 64>>>
// matrix: rows=128 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 128
// argument: alpha f32 value 1
// argument: beta f32 value 0
extern "C" __global__ void beta_zero(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[columns[i]];
  y[row] = alpha * sum + beta * y[row];  // BUG: uninitialised
}
