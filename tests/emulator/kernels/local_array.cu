// SpMM whose sums are in an array that is addressed by a number known at run time only.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 720 random
// argument: y output f32 800
// argument: rows i32 value 100
// argument: width i32 value 8
// expect: y spmm x 8
extern "C" __global__ void local_array(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows, int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sums[8];
  for (int k = 0; k < width; ++k) sums[k] = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
    for (int k = 0; k < width; ++k) sums[(k + i) % 8] += values[i] * x[columns[i] * width + (k + i) % 8];
  }
  for (int k = 0; k < width; ++k) y[row * width + k] = sums[k];
}
