// A loop of two entries at once runs once too often.
// SAYS: let in at line 10
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= rows || offsets[row + 1] == offsets[rows]) { if (row < rows) { float s = 0; for (int i = offsets[row]; i < offsets[row + 1]; ++i) s += values[i] * x[columns[i]]; y[row] = s; } return; }
  int i = offsets[row];
  const int end = offsets[row + 1];
  float one = 0, two = 0;
  for (; i < end; i += 2) {
    one += values[i] * x[columns[i]];
    two += values[i + 1] * x[columns[i + 1]];
  }
  y[row] = one + two;
}
