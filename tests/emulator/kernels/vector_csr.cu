// Eight lanes for each row, which reduce by shuffles within their group.
// launch: <<<4, 256>>>
// matrix: rows=100 columns=300 mean=20
// argument: row_ptr read-only i32 csr-offsets
// argument: columns read-only i32 csr-columns
// argument: values read-only f32 csr-values
// argument: x read-only f32 300 random
// argument: y output f32 100
// argument: rows i32 value 100
// expect: y spmv x
extern "C" __global__ void vector_csr(const int* row_ptr, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
  float sum = 0;
  if (row < rows) {
    for (int i = row_ptr[row] + lane; i < row_ptr[row + 1]; i += 8) sum += values[i] * x[columns[i]];
  }
  for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step, 8);
  if (row < rows && lane == 0) y[row] = sum;
}
