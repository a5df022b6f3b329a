// launch: spmv<<<1, 1024>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  for (int row = blockIdx.x * blockDim.x + threadIdx.x; row < n; row += gridDim.x * blockDim.x) {
    float sum = 0;
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
    y[row] = sum;
  }
}
