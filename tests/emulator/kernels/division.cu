// SpMM with a thread for each element of the result, found by division, and long rows by modulo.
// launch: <<<5, 96>>>
// matrix: rows=60 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 630 random
// argument: y output f32 420
// argument: rows i32 value 60
// argument: width i32 value 7
// expect: y spmm x 7
extern "C" __global__ void division(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows, int width) {
  const int element = blockIdx.x * blockDim.x + threadIdx.x, row = element / width, k = element % width;
  if (row >= rows) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
    sum += values[i] * x[static_cast<long long>(columns[i]) * width + k];
  }
  y[static_cast<size_t>(row) * width + k] = sum;
}
