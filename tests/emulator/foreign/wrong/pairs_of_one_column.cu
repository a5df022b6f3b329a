// The operand is read in pairs, of which the last is not whole where the number of columns is odd.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows, num_cols)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n, int m) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  if (row >= n || m == 0) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) {
    const float2 pair = reinterpret_cast<const float2*>(x)[ci[i] / 2];  // BUG
    sum += va[i] * (ci[i] % 2 ? pair.y : pair.x);
  }
  y[row] = sum;
}
