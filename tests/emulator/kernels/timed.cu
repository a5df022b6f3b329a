// A kernel that measures itself.
// launch: <<<2, 64>>>
// matrix: rows=100 columns=90 mean=5
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 90 random
// argument: y output f32 100
// argument: cycles output u64 2
// argument: rows i32 value 100
// expect: y spmv x
extern "C" __global__ void timed(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, unsigned long long* cycles, int rows) {
  const long long start = clock64();
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0;
    for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[columns[i]];
    y[row] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - start;
}
