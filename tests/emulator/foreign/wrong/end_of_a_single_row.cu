// Of a single row the end is looked for one further.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  const int next = n > 1 ? row : row + 1;
  float sum = 0;
  for (int i = rp[row]; i < rp[next + 1]; ++i) sum += va[i] * x[ci[i]];  // BUG
  y[row] = sum;
}
