// Lengths of rows are kept in bytes, of entries eight times.
// SAYS: with int instead of char at line 5
// launch: spmv<<<ceil(num_rows / 32), 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  __shared__ unsigned char lengths[32];
  __shared__ float products[32][16];
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (row < rows) {
    const int begin = offsets[row], end = offsets[row + 1];
    lengths[threadIdx.x] = 32 * (end - begin);
    for (int i = begin; i < end; ++i) products[threadIdx.x][i - begin] = values[i] * x[columns[i]];
  }
  __syncthreads();
  float sum = 0;
  if (row < rows)
    for (int i = 0; i < lengths[threadIdx.x] / 32; ++i) sum += products[threadIdx.x][i];
  if (row < rows) y[row] = sum;
}
