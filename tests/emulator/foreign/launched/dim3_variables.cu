// launch: spmv<<<grid, block>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  y[row] = sum;
}

#ifndef __CUDACC_RTC__
void run(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  dim3 block(128);
  dim3 grid((n + 127) / 128);
  spmv<<<grid, block>>>(rp, ci, va, x, y, n);
}
#endif
