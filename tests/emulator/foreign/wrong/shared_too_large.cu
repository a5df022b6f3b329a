// A kernel may not declare more than 48 KB of shared memory.
// launch: spmv<<<ceil(num_rows / 64), 64>>>(row_offsets, columns, values, x, y, num_rows)
__global__ void spmv(const int* rp, const int* ci, const float* va, const float* x, float* y, int n) {
  __shared__ float tile[13000];
  const int row = blockIdx.x * 64 + threadIdx.x;
  float sum = 0;
  if (row < n) {
    for (int i = rp[row]; i < rp[row + 1]; ++i) sum += va[i] * x[ci[i]];
  }
  tile[threadIdx.x * 200] = sum;
  __syncthreads();
  if (row < n) y[row] = tile[threadIdx.x * 200];
}
