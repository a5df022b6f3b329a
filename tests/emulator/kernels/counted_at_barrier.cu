// A barrier that counts: rows that are still at work decide whether the block goes on.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
extern "C" __global__ void counted_at_barrier(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  int i = row < rows ? row_ptr[row] : 0;
  const int end = row < rows ? row_ptr[row + 1] : 0;
  float sum = 0;
  while (__syncthreads_count(i < end) > 0) {
    for (int k = 0; k < 2 && i < end; ++k, ++i) sum += values[i] * x[columns[i]];
  }
  if (row < rows) y[row] = sum;
}
