// Where a thread's rows end is computed in single precision, which loses the last row.
// SAYS: with 2 instead of 1 at line 8
// launch: spmv<<<25, 32>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const float each = 0.999f * rows / (gridDim.x * blockDim.x);
  const int first = int(thread * each);
  const int last = int((thread + 1) * each);
  for (int row = first; row < last; ++row) {
    float sum = 0;
    for (int i = offsets[row]; i < offsets[row + 1]; ++i) sum += values[i] * x[columns[i]];
    y[row] = sum;
  }
}
