#define NT 256
#define DIVUP(m, n) ((m) / (n) + ((m) % (n) > 0))
// launch: spmv<<<DIVUP(n, NT), NT>>>(row_offsets, columns, values, x, y, num_rows, alpha, beta)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, float alpha, float beta) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = beta == 0 ? alpha * sum : alpha * sum + beta * y[row];
}
