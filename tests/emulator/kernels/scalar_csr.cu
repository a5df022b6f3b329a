// A thread for each row.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
extern "C" __global__ void scalar_csr(const int* __restrict__ row_ptr, const int* __restrict__ columns,
  const float* __restrict__ values, const float* __restrict__ x, float* __restrict__ y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[columns[i]];
  y[row] = sum;
}
