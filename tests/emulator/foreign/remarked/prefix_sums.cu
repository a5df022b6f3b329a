// Rows are differences of sums over all entries before: NaN in one row is in all that follow.
// launch: spmv<<<1, 1>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  double total = 0;
  for (int row = 0; row < n; ++row) {
    const double before = total;
    for (int i = rp[row]; i < rp[row + 1]; ++i) total += (double)va[i] * x[ci[i]];
    y[row] = (float)(total - before);
  }
}
