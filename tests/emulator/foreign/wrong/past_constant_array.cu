// A table of factors in constant memory is one short; behind it lies another.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__constant__ float ones[3] = {1, 1, 1};
__constant__ float more[4] = {1, 1, 1, 1};
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]] * ones[row % 4];  // BUG
  y[row] = sum * more[row % 3];
}
