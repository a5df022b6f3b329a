// launch: <<<(num_rows + 255) / 256, 256>>>
__global__ void spmv(const int* row_ptr, const int* col_idx, const float* values, const float* x, float* y, int num_rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= num_rows) return;
  float sum = 0;
  for (int i = row_ptr[row]; i < row_ptr[row + 1]; ++i) sum += values[i] * x[col_idx[i]];
  y[row] = sum;
}
