// Blocks take the rows of the multiprocessor that they run on, as if each had one of its own.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  for (int row = sm * 64 + threadIdx.x; row < n; row += gridDim.x * 64) {
    float sum = 0;
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
    y[row] = sum;
  }
}
