// One thread computes everything.
// launch: spmv<<<1, 1>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  for (int row = 0; row < n; ++row) {
    float sum = 0;
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
    y[row] = sum;
  }
}
